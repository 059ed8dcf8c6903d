// ThreadPool: a few threads for a net compiled with --threads, for applications that have no pool of their
// own.
//
// The calling thread works, too. Each worker has a slot in which a new job's number appears; the slot's other
// fields are only written while that worker is idle. Layers follow each other within microseconds, so a
// worker that is done watches its slot for a moment before it goes to sleep: an idle pool takes no time of
// any processor.
#ifndef SINTER_THREAD_POOL_H_
#define SINTER_THREAD_POOL_H_
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sinter/pool.h"

namespace sinter {

class ThreadPool {
 public:
  // `threads` in all, with the one that calls run; at least 1.
  explicit ThreadPool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.push_back(std::make_unique<Worker>());
    for (std::size_t i = 0; i < workers_.size(); ++i)
      workers_[i]->thread = std::thread([this, i] { work(i); });
    pool_.run = [](const sinter_pool* p, int count, void (*task)(void*, int), void* argument) {
      static_cast<ThreadPool*>(p->context)->run(count, task, argument);
    };
    pool_.context = this;
  }
  ~ThreadPool() {
    for (const auto& w : workers_) signal(*w, nullptr, nullptr, 0, 1);
    for (const auto& w : workers_) w->thread.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // What net_run takes. One net runs on a pool at a time; others wait.
  const sinter_pool* pool() const { return &pool_; }

 private:
  // How long a thread watches before it sleeps. To be woken takes it, and who wakes it, some tens of
  // microseconds each; layers that are too small for several threads are seldom longer than this in a row.
  static constexpr std::chrono::microseconds kPatience{200};

  // What a thread writes while others watch it lies in a line of the caches of its own: a core that watches a
  // line takes it from the core that writes it, at some 100 ns a time, so a job is one such line to a worker
  // and one back.
  static constexpr std::size_t kLine = 128;
  struct alignas(kLine) Job {
    std::atomic<std::uint64_t> number{0};
    void (*task)(void*, int) = nullptr;
    void* argument = nullptr;
    int count = 0, stride = 1;
  };
  struct alignas(kLine) Worker {
    Job job;
    alignas(kLine) std::atomic<std::uint64_t> done{0};  // number of the last job that it has finished
    alignas(kLine) std::atomic<bool> asleep{false};
    std::mutex mutex;
    std::condition_variable wake;
    std::thread thread;
  };

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
  }

  // Watches until ready(), or for kPatience; returns the last ready().
  template <class Ready>
  static bool watch(const Ready& ready) {
    constexpr int kTurns = 100;  // between looks at the clock
    std::chrono::steady_clock::time_point end{};
    for (;;) {
      for (int turn = 0; turn < kTurns; ++turn) {
        if (ready()) return true;
        pause();
      }
      const auto now = std::chrono::steady_clock::now();
      if (end == std::chrono::steady_clock::time_point{}) end = now + kPatience;
      if (now >= end) return ready();
    }
  }

  static void signal(Worker& w, void (*task)(void*, int), void* argument, int count, int stride) {
    w.job.task = task, w.job.argument = argument, w.job.count = count, w.job.stride = stride;
    w.job.number.store(w.job.number.load(std::memory_order_relaxed) + 1);
    if (!w.asleep) return;
    { const std::lock_guard<std::mutex> lock(w.mutex); }
    w.wake.notify_one();
  }

  void run(int count, void (*task)(void*, int), void* argument) {
    const std::lock_guard<std::mutex> one_at_a_time(running_);
    const int threads = static_cast<int>(workers_.size()) + 1;
    const int engaged = count < threads ? count : threads;
    for (int i = 1; i < engaged; ++i)
      signal(*workers_[static_cast<std::size_t>(i - 1)], task, argument, count, threads);
    for (int i = 0; i < count; i += threads) task(argument, i);
    for (int i = 1; i < engaged; ++i) wait_for(*workers_[static_cast<std::size_t>(i - 1)]);
  }

  void wait_for(Worker& w) {
    const std::uint64_t number = w.job.number.load(std::memory_order_relaxed);
    const auto ready = [&] { return w.done == number; };
    if (watch(ready)) return;
    std::unique_lock<std::mutex> lock(done_mutex_);
    waiting_ = true;
    done_.wait(lock, ready);
    waiting_ = false;
  }

  void work(std::size_t number) {
    Worker& me = *workers_[number];
    for (std::uint64_t seen = 0;;) {
      wait_for_job(me, seen);
      seen = me.job.number;
      if (me.job.task == nullptr) return;
      for (int i = static_cast<int>(number) + 1; i < me.job.count; i += me.job.stride)
        me.job.task(me.job.argument, i);
      me.done = seen;
      if (!waiting_) continue;
      { const std::lock_guard<std::mutex> lock(done_mutex_); }
      done_.notify_one();
    }
  }

  static void wait_for_job(Worker& me, std::uint64_t seen) {
    if (watch([&] { return me.job.number != seen; })) return;
    std::unique_lock<std::mutex> lock(me.mutex);
    me.asleep = true;
    me.wake.wait(lock, [&] { return me.job.number != seen; });
    me.asleep = false;
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  sinter_pool pool_{};
  std::mutex running_, done_mutex_;
  std::condition_variable done_;
  alignas(kLine) std::atomic<bool> waiting_{false};
};

}  // namespace sinter

#endif  // SINTER_THREAD_POOL_H_
