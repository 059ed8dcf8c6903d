// Random operators: RandomUniform, RandomNormal, the same ...Like a tensor, Bernoulli, Multinomial (ONNX 22).
//
// "Random" means a fixed sequence for each seed (runtime/sinter/random.h): every run gives the same numbers,
// unless the node has one more input than in ONNX, a stream, which is another one in each run
// (passes/random_stream.h). They are impure, so that two nodes without a seed are never taken for one.
#include "ops/elementwise/random.h"

#include <cmath>
#include <cstring>

#include "sinter/random.h"

namespace sinter {

bool is_random(const Node& n) {
  const std::string_view name = n.op->name;
  return n.op->domain[0] == '\0' &&
         (name.starts_with("Random") || name == "Bernoulli" || name == "Multinomial");
}

size_t stream_input(const Node& n) { return static_cast<size_t>(n.op->min_inputs); }

uint64_t seed_of(const Node& n) {
  // Nodes of a stream are told apart by their numbers, whatever seeds and names the model gives them.
  if (n.attributes.has("stream")) return random_bits(0, n.attributes.integer("stream", 0));
  if (n.attributes.has("seed")) {
    const float seed = n.attributes.real("seed", 0);
    uint32_t bits = 0;
    std::memcpy(&bits, &seed, sizeof bits);
    return bits;
  }
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : n.name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

namespace {

uint64_t seed_of(const Evaluation& e) {
  const size_t stream = stream_input(e.node);
  return e.has(stream) ? random_seed(e.in[stream].as<uint64_t>(), seed_of(e.node)) : seed_of(e.node);
}

void infer_stream(Inference& x) { x.set(0, DType::kU64, {Dim(2)}); }
void eval_stream(Evaluation& e) {
  random_stream(e.in[0].as<uint64_t>(), seed_of(e.node), e.out[0].as<uint64_t>());
}

bool is_like(const Node& n) { return std::string_view(n.op->name).ends_with("Like"); }

// The type of attribute dtype, or of `fallback` where there is none.
DType type_of(const Inference& x, DType fallback) {
  if (!x.attributes().has("dtype")) return fallback;
  const int64_t to = x.attributes().integer("dtype", 0);
  return to < 0 || to > INT32_MAX ? DType::kUndefined : dtype_of_onnx(static_cast<int>(to));
}

void infer_random(Inference& x) {
  const Attributes& a = x.attributes();
  const bool like = is_like(x.node);
  const DType t = type_of(x, like ? x.dtype(0) : DType::kF32);
  x.require(is_float(t), "its dtype must be a float's");
  for (const char* name : {"low", "high", "mean", "scale", "seed"})
    x.require(std::isfinite(a.real(name, 0)), fmt::format("its {} is not finite", name));
  if (like) return x.set(0, t, x.shape(0));
  x.require(a.has("shape"), "attribute shape is missing");
  Shape shape;
  for (int64_t d : a.integers("shape")) {
    x.require(d >= 0, fmt::format("its shape has the extent {}", d));
    shape.emplace_back(d);
  }
  x.set(0, t, std::move(shape));
}

void eval_random(Evaluation& e) {
  const Attributes& a = e.attributes();
  const bool normal = std::string_view(e.node.op->name).starts_with("RandomNormal");
  with_type(e.out[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* y = e.out[0].as<T>();
    if (normal)
      random_normal(seed_of(e), a.real("mean", 0), a.real("scale", 1), e.out[0].size(), y);
    else
      random_uniform(seed_of(e), a.real("low", 0), a.real("high", 1), e.out[0].size(), y);
  });
}

void infer_bernoulli(Inference& x) {
  x.require(is_float(x.dtype(0)), "probabilities are floats");
  const DType t = type_of(x, x.dtype(0));
  x.require(is_float(t) || t == DType::kBool ||
                (is_integer(t) && size_of(t) * 8 >= 8 && t != DType::kI4 && t != DType::kU4 &&
                 t != DType::kI2 && t != DType::kU2),
            "its dtype is not a number's");
  x.require(std::isfinite(x.attributes().real("seed", 0)), "its seed is not finite");
  x.set(0, t, x.shape(0));
}
void eval_bernoulli(Evaluation& e) {
  with_type(e.in[0].dtype(), [&](auto from) {
    with_type(e.out[0].dtype(), [&](auto to) {
      bernoulli(seed_of(e), e.in[0].as<decltype(from)>(), e.in[0].size(), e.out[0].as<decltype(to)>());
    });
  });
}

void infer_multinomial(Inference& x) {
  x.require(is_float(x.dtype(0)), "probabilities are floats");
  x.require(x.rank(0) == 2, fmt::format("probabilities of shape {}", text(x.shape(0))));
  const DType t = type_of(x, DType::kI32);
  x.require(t == DType::kI32 || t == DType::kI64, "its dtype must be int32 or int64");
  const int64_t samples = x.attributes().integer("sample_size", 1);
  x.require(samples >= 0, fmt::format("its sample_size is {}", samples));
  x.require(std::isfinite(x.attributes().real("seed", 0)), "its seed is not finite");
  x.require(x.shape(0)[1].hi() >= 1, "there are no classes");
  x.require_equal(max(x.shape(0)[1], 1), x.shape(0)[1], "there are classes");
  x.set(0, t, {x.shape(0)[0], Dim(samples)});
}
void eval_multinomial(Evaluation& e) {
  const Tensor& x = e.in[0];
  with_type(x.dtype(), [&](auto from) {
    using X = decltype(from);
    if (e.out[0].dtype() == DType::kI32)
      multinomial(seed_of(e), x.as<X>(), x.dim(0), x.dim(1), e.out[0].dim(1), e.out[0].as<int32_t>());
    else
      multinomial(seed_of(e), x.as<X>(), x.dim(0), x.dim(1), e.out[0].dim(1), e.out[0].as<int64_t>());
  });
}

constexpr const char* kNote =
    "the same numbers in every run, by attribute seed or the node's name; other ones with --random state";

}  // namespace

const std::vector<Op>& ops_random() {
  static const std::vector<Op> table = {
      {.name = "RandomUniform",
       .min_inputs = 0,
       .max_inputs = 1,
       .infer = infer_random,
       .eval = eval_random,
       .impure = true,
       .note = kNote},
      {.name = "RandomNormal",
       .min_inputs = 0,
       .max_inputs = 1,
       .infer = infer_random,
       .eval = eval_random,
       .impure = true,
       .note = kNote},
      {.name = "RandomUniformLike",
       .max_inputs = 2,
       .infer = infer_random,
       .eval = eval_random,
       .impure = true,
       .note = kNote},
      {.name = "RandomNormalLike",
       .max_inputs = 2,
       .infer = infer_random,
       .eval = eval_random,
       .impure = true,
       .note = kNote},
      {.name = "Bernoulli",
       .max_inputs = 2,
       .infer = infer_bernoulli,
       .eval = eval_bernoulli,
       .impure = true,
       .note = kNote},
      {.name = "Multinomial",
       .max_inputs = 2,
       .infer = infer_multinomial,
       .eval = eval_multinomial,
       .impure = true,
       .note = kNote},
      // What the iterations of a Loop draw from, which is not what the layers around it draw from.
      {.name = "random_stream",
       .domain = "sinter",
       .infer = infer_stream,
       .eval = eval_stream,
       .impure = true},
  };
  return table;
}

}  // namespace sinter
