// Prints the GFLOP/s that this machine's multiply-add units give one thread: chains of independent fused
// multiply-adds in registers, enough of them to hide the latency, no loads. CPU time; the best of many short
// turns.
#include <cstdio>
#include <ctime>

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kLanes = kBytes / 4;
constexpr int kChains = 12;
typedef float Vector __attribute__((vector_size(kBytes)));

// One turn; `sum` keeps the compiler from dropping the work.
double gflops(float& sum) {
  constexpr long kSteps = 200000;
  Vector chain[kChains];
  for (int c = 0; c < kChains; ++c) chain[c] = Vector{} + static_cast<float>(c);
  Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
  asm volatile("" : "+m"(factor), "+m"(term));
  const std::clock_t start = std::clock();
  for (long i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) chain[c] = chain[c] * factor + term;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  for (const Vector& v : chain) sum += v[0];
  return 2.0 * kSteps * kChains * kLanes / seconds / 1e9;
}

}  // namespace

int main() {
  float sum = 0;
  double best = 0;
  for (int turn = 0; turn < 300; ++turn) {
    const double now = gflops(sum);
    best = now > best ? now : best;
  }
  std::printf("%.1f\n", best);
  return sum == 0.123f;
}
