// Many threads push, one takes everything at once. Internal.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

namespace troupe::transport {

/// A stack of nodes that the consumer detaches whole and turns around (Treiber, "Systems
/// Programming: Coping with Parallelism", 1986; taking everything at once leaves no ABA problem).
/// `T` is cheap to move.
template <class T>
class mpsc_queue {
public:
  mpsc_queue() = default;
  mpsc_queue(const mpsc_queue&) = delete;
  mpsc_queue& operator=(const mpsc_queue&) = delete;

  ~mpsc_queue() {
    std::vector<T> rest;
    take_all(rest);
  }

  /// Any thread. Lock-free.
  void push(T value) {
    auto made = new node{std::move(value), head_.load(std::memory_order_relaxed)};
    // seq_cst: the caller then asks whether the consumer sleeps, and must not see that too early.
    while (!head_.compare_exchange_weak(made->next, made, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
    }
  }

  /// The consumer's thread.
  bool empty() const noexcept { return head_.load(std::memory_order_seq_cst) == nullptr; }

  /// Appends everything to `out`, oldest first. The consumer's thread.
  /// @returns whether there was anything.
  bool take_all(std::vector<T>& out) {
    if (head_.load(std::memory_order_relaxed) == nullptr)
      return false;
    auto newest = head_.exchange(nullptr, std::memory_order_acquire);
    node* oldest = nullptr;
    while (newest) {
      auto next = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = next;
    }
    while (oldest) {
      auto next = oldest->next;
      out.push_back(std::move(oldest->value));
      delete oldest;
      oldest = next;
    }
    return true;
  }

private:
  struct node {
    T value;
    node* next;
  };

  std::atomic<node*> head_ = nullptr;
};

} // namespace troupe::transport
