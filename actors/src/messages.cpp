#include "troupe/actors/messages.hpp"

namespace troupe::cluster {

void add_message_types(caf::actor_system_config& config) {
  config.add_message_type<submit_request>("troupe.submit")
      .add_message_type<submitted>("troupe.submitted")
      .add_message_type<job_summary>("troupe.job-summary")
      .add_message_type<std::vector<job_summary>>("troupe.job-summaries")
      .add_message_type<task_summary>("troupe.task-summary")
      .add_message_type<list_jobs_request>("troupe.list-jobs")
      .add_message_type<job_request>("troupe.job")
      .add_message_type<job_details>("troupe.job-details")
      .add_message_type<wait_request>("troupe.wait")
      .add_message_type<output_request>("troupe.output")
      .add_message_type<output_chunk>("troupe.output-chunk")
      .add_message_type<cancel_request>("troupe.cancel")
      .add_message_type<node_summary>("troupe.node-summary")
      .add_message_type<std::vector<node_summary>>("troupe.node-summaries")
      .add_message_type<list_nodes_request>("troupe.list-nodes")
      .add_message_type<info_request>("troupe.info")
      .add_message_type<cluster_info>("troupe.cluster-info")
      .add_message_type<command_request>("troupe.command")
      .add_message_type<list_actors_request>("troupe.list-actors")
      .add_message_type<std::vector<std::string>>("troupe.strings")
      .add_message_type<shutdown_request>("troupe.shutdown")
      .add_message_type<join_request>("troupe.join")
      .add_message_type<join_accepted>("troupe.join-accepted")
      .add_message_type<kill_tasks>("troupe.kill-tasks")
      .add_message_type<output_taken>("troupe.output-taken")
      .add_message_type<leave_now>("troupe.leave-now")
      .add_message_type<declared_dead>("troupe.declared-dead")
      .add_message_type<leaving>("troupe.leaving");
}

} // namespace troupe::cluster
