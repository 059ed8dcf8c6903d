// ThreadPool: a few threads for a net compiled with --threads, for applications that have no pool of their
// own.
//
// The calling thread works, too. Each worker has a slot in which a new job's number appears; job fields are
// only written while no worker is engaged. Layers follow each other within microseconds, so a worker that is
// done watches its slot for a moment before it goes to sleep: an idle pool takes no time of any processor.
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
    ending_ = true;
    for (const auto& w : workers_) signal(*w);
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

  struct Worker {
    std::thread thread;
    std::mutex mutex;
    std::condition_variable wake;
    std::atomic<std::uint64_t> job{0};
    std::atomic<bool> asleep{false};
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

  void signal(Worker& w) {
    w.job.fetch_add(1);
    if (!w.asleep) return;
    { const std::lock_guard<std::mutex> lock(w.mutex); }
    w.wake.notify_one();
  }

  void run(int count, void (*task)(void*, int), void* argument) {
    const std::lock_guard<std::mutex> one_at_a_time(running_);
    const int threads = static_cast<int>(workers_.size()) + 1;
    const int engaged = count < threads ? count : threads;
    task_ = task, argument_ = argument, count_ = count, stride_ = threads;
    left_ = engaged - 1;
    for (int i = 1; i < engaged; ++i) signal(*workers_[static_cast<std::size_t>(i - 1)]);
    for (int i = 0; i < count; i += threads) task(argument, i);
    if (watch([this] { return left_ == 0; })) return;
    std::unique_lock<std::mutex> lock(done_mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
  }

  void work(std::size_t number) {
    Worker& me = *workers_[number];
    for (std::uint64_t seen = 0;;) {
      wait_for_job(me, seen);
      seen = me.job;
      if (ending_) return;
      for (int i = static_cast<int>(number) + 1; i < count_; i += stride_) task_(argument_, i);
      if (left_.fetch_sub(1) != 1) continue;
      { const std::lock_guard<std::mutex> lock(done_mutex_); }
      done_.notify_one();
    }
  }

  static void wait_for_job(Worker& me, std::uint64_t seen) {
    if (watch([&] { return me.job != seen; })) return;
    std::unique_lock<std::mutex> lock(me.mutex);
    me.asleep = true;
    me.wake.wait(lock, [&] { return me.job != seen; });
    me.asleep = false;
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  sinter_pool pool_{};
  std::mutex running_, done_mutex_;
  std::condition_variable done_;
  std::atomic<int> left_{0};
  std::atomic<bool> ending_{false};
  void (*task_)(void*, int) = nullptr;
  void* argument_ = nullptr;
  int count_ = 0, stride_ = 1;
};

}  // namespace sinter

#endif  // SINTER_THREAD_POOL_H_
