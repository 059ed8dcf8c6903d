// Attention (ONNX opset 25) and RotaryEmbedding (opset 23).
//
// Attention: y = softmax(cap(scale q k^T) + mask) v, head by head; heads of keys and values may be shared by
// several of queries. Query i stands at position offset + i among the keys: offset is the length of the past,
// or valid keys - queries where input 6 counts those, else 0. What `is_causal`, the window, a mask of bools,
// a mask that is shorter than the keys and the count of valid keys exclude takes no part whatever its score;
// a row without any key gives zeros.
//
// RotaryEmbedding: pairs of elements of each head turned by the angles whose cosines and sines are given.
// Beyond ONNX, these may be shared by the batch (extent 1), and with the attribute `full_angles` = 1, which
// pass fuse_rotary sets, each element of a pair has its own: rows of rotary_embedding_dim instead of half of
// it.
#include "ops/sequences/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/products/contraction.h"
#include "ops/sequences/stored_rows.h"

namespace sinter {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// --- infer

// Keys and values are caches that may be stored in fewer bytes (--cache).
bool reads_stored(const Node& n) { return n.op->domain[0] != '\0'; }

void require_attention_types(Inference& x) {
  const DType t = x.dtype(kQ);
  if (reads_stored(x.node)) {
    const auto stored = [](DType d) { return d == DType::kF32 || d == DType::kF16 || d == DType::kI8; };
    x.require(t == DType::kF32 && stored(x.dtype(kK)) && stored(x.dtype(kV)), "caches of other types");
    return;
  }
  x.require(is_float(t) && x.dtype(kK) == t,
            fmt::format("queries of type {} and keys of type {}", name_of(t), name_of(x.dtype(kK))));
  x.require(is_float(x.dtype(kV)), fmt::format("values of type {}", name_of(x.dtype(kV))));
  if (x.has(kMask)) {
    const DType m = x.dtype(kMask);
    x.require(is_float(m) || is_integer(m) || m == DType::kBool,
              fmt::format("a mask of type {}", name_of(m)));
  }
  x.require(x.has(kPastKey) == x.has(kPastValue), "past_key and past_value must be given together");
  if (x.has(kPastKey))
    x.require(x.dtype(kPastKey) == t && x.dtype(kPastValue) == x.dtype(kV),
              "the past has another type than keys and values");
  if (x.has(kValidKeys)) {
    x.require(!x.has(kPastKey), "nonpad_kv_seqlen cannot be given with a past");
    x.require(x.dtype(kValidKeys) == DType::kI64, "nonpad_kv_seqlen is not int64");
  }
}

void require_axes(Inference& x, const Shape& got, const Shape& want, const std::string& what) {
  x.require(got.size() == want.size(), fmt::format("{} is {}", what, text(got)));
  for (size_t a = 0; a < got.size(); ++a)
    x.require_equal(got[a], want[a], fmt::format("axis {} of {}", a, what));
}

// The mask broadcasts to [batch, heads, queries, keys]; its last axis may be shorter.
void require_mask(Inference& x, const AttentionForm& f) {
  const Shape& m = x.shape(kMask);
  x.require(!m.empty() && m.size() <= 4, fmt::format("the mask {} has not 1 to 4 axes", text(m)));
  const Shape full{f.batch, f.q_heads, f.q_length, f.total};
  for (size_t a = 0; a + 1 < m.size(); ++a) {
    const Dim& want = full[4 - m.size() + a];
    if (m[a].is(1) || m[a] == want) continue;
    const std::string what = fmt::format("axis {} of the mask {}", a, text(m));
    if (m[a].lo() > 1)
      x.require_equal(m[a], want, what);
    else
      x.checks.push_back({m[a], want, true, fmt::format("{}: {}", label(x.node), what)});
  }
}

void infer_attention(Inference& x) {
  require_attention_types(x);
  const auto fail = [&](const std::string& why) { x.fail(why); };
  const Shape of_k = stored_shape(x.in[kK].type), of_v = stored_shape(x.in[kV].type);
  const AttentionForm f =
      attention_form(x.node, x.shape(kQ), of_k, of_v, x.has(kPastKey) ? &x.shape(kPastKey) : nullptr, fail);
  const bool flat = x.rank(kQ) == 3;
  const auto whole = [&](HeadLayout l, const Dim& heads, const Dim& length, const Dim& head) {
    if (flat) return Shape{f.batch, length, heads * head};
    return l == HeadLayout::kHeadsFirst ? Shape{f.batch, heads, length, head}
                                        : Shape{f.batch, length, heads, head};
  };
  require_axes(x, x.shape(kQ), whole(f.q, f.q_heads, f.q_length, f.head), "Q");
  require_axes(x, of_k, whole(f.k, f.kv_heads, f.kv_length, f.head), "K");
  require_axes(x, of_v, whole(f.v, f.kv_heads, f.kv_length, f.v_head), "V");
  if (f.q_heads.is_static() && f.kv_heads.is_static())
    x.require(f.kv_heads.value() > 0 && f.q_heads.value() % f.kv_heads.value() == 0,
              fmt::format("{} heads of queries for {} of keys", f.q_heads.text(), f.kv_heads.text()));
  else
    x.require_equal(f.q_heads, f.kv_heads, "heads of queries and keys");
  const Shape key{f.batch, f.kv_heads, f.past, f.head}, value{f.batch, f.kv_heads, f.past, f.v_head};
  if (x.has(kPastKey)) {
    require_axes(x, x.shape(kPastKey), key, "past_key");
    require_axes(x, x.shape(kPastValue), value, "past_value");
  }
  if (x.has(kValidKeys)) require_axes(x, x.shape(kValidKeys), {f.batch}, "nonpad_kv_seqlen");
  if (x.has(kMask)) require_mask(x, f);
  x.set(kY, x.dtype(kQ), whole(f.y, f.q_heads, f.q_length, f.v_head));
  const auto wants = [&](size_t i) { return i < x.out.size() && x.out[i].present; };
  if (wants(kPresentKey)) x.set(kPresentKey, x.dtype(kK), {f.batch, f.kv_heads, f.total, f.head});
  if (wants(kPresentValue)) x.set(kPresentValue, x.dtype(kV), {f.batch, f.kv_heads, f.total, f.v_head});
  if (wants(kScores)) x.set(kScores, x.dtype(kQ), {f.batch, f.q_heads, f.q_length, f.total});
}

// --- eval

// Any layout as [batch, heads, positions, elements] in `work`.
Tensor heads_first(const Tensor& t, HeadLayout l, int64_t heads, DType work) {
  Tensor wide = converted_if(t, work);
  if (t.rank() == 3)
    wide = wide.reshaped({t.dim(0), t.dim(1), heads, t.dim(2) / std::max<int64_t>(heads, 1)});
  return l == HeadLayout::kHeadsFirst ? wide : wide.transposed({0, 2, 1, 3});
}

Tensor joined(const Tensor& past, const Tensor& now) {  // along the positions
  if (!past) return now;
  const int64_t rows = past.dim(0) * past.dim(1), a = past.dim(2) * past.dim(3), b = now.dim(2) * now.dim(3);
  Tensor out(now.dtype(), {now.dim(0), now.dim(1), past.dim(2) + now.dim(2), now.dim(3)});
  const auto each = static_cast<int64_t>(size_of(now.dtype()));
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(past.data() + r * a * each, a * each, out.mutable_data() + r * (a + b) * each);
    std::copy_n(now.data() + r * b * each, b * each, out.mutable_data() + (r * (a + b) + a) * each);
  }
  return out;
}

// The keys that a query may see, and what is added to its scores.
class Bias {
 public:
  Bias(const Evaluation& e, const AttentionForm& f) : e_(e), f_(f), total_(f.total.value()) {}
  // -inf where key j takes no part.
  double operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const bool counts = e_.has(kValidKeys);
    const int64_t valid = counts ? e_.in[kValidKeys].integer(b) : total_;
    const int64_t at = i + (counts ? valid - f_.q_length.value() : f_.past.value());
    if (j >= valid || (f_.causal && j > at)) return kNone;
    if ((f_.left >= 0 && j < at - f_.left) || (f_.right >= 0 && j > at + f_.right)) return kNone;
    if (!e_.has(kMask)) return 0;
    const Tensor& m = e_.in[kMask];
    const int64_t index[4] = {b, h, i, j};
    int64_t k = 0;
    for (int64_t a = 0; a < m.rank(); ++a) {
      const int64_t at_axis = index[4 - m.rank() + a];
      if (a == m.rank() - 1 && m.dim(a) != total_ && j >= m.dim(a)) return kNone;
      k = k * m.dim(a) + (m.dim(a) == 1 && !(a == m.rank() - 1 && total_ == 1) ? 0 : at_axis);
    }
    if (m.dtype() == DType::kBool) return m.integer(k) ? 0 : kNone;
    return m.real(k);
  }

 private:
  const Evaluation& e_;
  const AttentionForm& f_;
  int64_t total_;
};

template <class T>
void attend(Evaluation& e, const AttentionForm& f, const Tensor& q, const Tensor& k, const Tensor& v,
            Tensor& y, Tensor& scores) {
  const int64_t queries = f.q_length.value(), total = f.total.value(), head = f.head.value(),
                v_head = f.v_head.value(), heads = f.q_heads.value(), group = heads / f.kv_heads.value();
  const Bias bias(e, f);
  std::vector<T> s(static_cast<size_t>(queries * total));
  for (int64_t b = 0; b < f.batch.value(); ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kv = b * f.kv_heads.value() + h / group, row = (b * heads + h) * queries;
      multiply(false, true, queries, total, head, q.as<T>() + row * head, head, k.as<T>() + kv * total * head,
               head, s.data(), total);
      for (int64_t i = 0; i < queries; ++i) {
        T* line = s.data() + i * total;
        T* shown = scores ? scores.as<T>() + (row + i) * total : nullptr;
        double top = kNone, sum = 0;
        std::vector<double> p(static_cast<size_t>(total));
        for (int64_t j = 0; j < total; ++j) {
          double score = static_cast<double>(line[j]) * f.scale;
          if (shown && f.scores_mode == 0) shown[j] = static_cast<T>(score);
          const double cap = static_cast<double>(f.softcap);
          if (cap > 0) score = std::tanh(score / cap) * cap;
          if (shown && f.scores_mode == 1) shown[j] = static_cast<T>(score);
          const double added = bias(b, h, i, j);
          score = added == kNone ? kNone : static_cast<double>(static_cast<T>(score + added));
          if (shown && f.scores_mode == 2) shown[j] = static_cast<T>(score);
          p[static_cast<size_t>(j)] = score;
          if (score > top || score != score) top = score;
        }
        for (double& score : p) sum += score = score == kNone ? 0 : std::exp(score - top);
        for (int64_t j = 0; j < total; ++j) {
          const double part = p[static_cast<size_t>(j)];
          line[j] = static_cast<T>(top == kNone && f.masked_rows_are_zero ? 0 : part / sum);
          if (shown && f.scores_mode == 3) shown[j] = line[j];
        }
      }
      multiply(false, false, queries, v_head, total, s.data(), total, v.as<T>() + kv * total * v_head, v_head,
               y.as<T>() + row * v_head, v_head);
    }
}

void eval_attention(Evaluation& e) {
  for (const size_t i : {kK, kV}) e.in[i] = read_rows(e.in[i]);
  const auto shape = [&](size_t i) { return Shape(e.in[i].shape().begin(), e.in[i].shape().end()); };
  const Shape past_shape = e.has(kPastKey) ? shape(kPastKey) : Shape{};
  const AttentionForm f =
      attention_form(e.node, shape(kQ), shape(kK), shape(kV), e.has(kPastKey) ? &past_shape : nullptr,
                     [&](const std::string& why) { e.fail(why); });
  const DType t = e.in[kQ].dtype();
  const DType work = t == DType::kF64 || e.in[kV].dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
  if (e.has(kValidKeys))
    for (int64_t b = 0; b < e.in[kValidKeys].size(); ++b)
      if (e.in[kValidKeys].integer(b) < 0 || e.in[kValidKeys].integer(b) > f.total.value())
        e.fail(fmt::format("{} valid keys of {}", e.in[kValidKeys].integer(b), f.total.value()));
  const Tensor q = heads_first(e.in[kQ], f.q, f.q_heads.value(), work);
  const Tensor past_key = e.has(kPastKey) ? converted_if(e.in[kPastKey], work) : Tensor();
  const Tensor past_value = e.has(kPastValue) ? converted_if(e.in[kPastValue], work) : Tensor();
  const Tensor k = joined(past_key, heads_first(e.in[kK], f.k, f.kv_heads.value(), work));
  const Tensor v = joined(past_value, heads_first(e.in[kV], f.v, f.kv_heads.value(), work));
  Tensor y(work, {q.dim(0), q.dim(1), q.dim(2), v.dim(3)}), scores;
  if (e.node.has_output(kScores)) scores = Tensor(work, e.out[kScores].shape());
  if (work == DType::kF64)
    attend<double>(e, f, q, k, v, y, scores);
  else
    attend<float>(e, f, q, k, v, y, scores);
  if (f.y == HeadLayout::kPositionsFirst) y = y.transposed({0, 2, 1, 3});
  e.out[kY] = converted_if(y, t).reshaped(e.out[kY].shape());
  if (e.node.has_output(kPresentKey)) e.out[kPresentKey] = converted_if(k, e.in[kK].dtype());
  if (e.node.has_output(kPresentValue)) e.out[kPresentValue] = converted_if(v, e.in[kV].dtype());
  if (scores) e.out[kScores] = converted_if(scores, t);
}

// --- RotaryEmbedding

void infer_rotary(Inference& x) {
  const DType t = x.dtype(0);
  x.require(is_float(t) && x.dtype(1) == t && x.dtype(2) == t, "X and the caches must be floats of one type");
  x.require(x.rank(0) == 3 || x.rank(0) == 4,
            fmt::format("X {} has not three or four axes", text(x.shape(0))));
  const Shape& s = x.shape(0);
  Dim head = s.back();
  if (x.rank(0) == 3) {
    const int64_t heads = x.attributes().integer("num_heads", 0);
    x.require(heads > 0, fmt::format("num_heads is {}", heads));
    x.require(head.is_static() && head.value() % heads == 0,
              fmt::format("{} elements for {} heads", head.text(), heads));
    head = Dim(head.value() / heads);
  }
  x.require(head.is_static(), "the extent of a head is not known");
  const int64_t given = x.attributes().integer("rotary_embedding_dim", 0),
                turned = given == 0 ? head.value() : given;
  x.require(turned > 0 && turned <= head.value() && turned % 2 == 0,
            fmt::format("{} elements of a head of {} can't be turned in pairs", turned, head.value()));
  const Dim &batch = s[0], &length = s[x.rank(0) == 3 ? 1 : 2];
  const Dim width(x.attributes().integer("full_angles", 0) != 0 ? turned : turned / 2);
  for (size_t i : {1u, 2u}) {
    const std::string what = i == 1 ? "the cosines" : "the sines";
    if (x.has(3)) {
      x.require(x.rank(i) == 2, fmt::format("{} {} have not two axes", what, text(x.shape(i))));
      x.require_equal(x.shape(i)[0], x.shape(1)[0], "positions of the caches");
      x.require_equal(x.shape(i)[1], width, "angles of " + what);
    } else {
      const bool shared = x.rank(i) == 3 && x.shape(i)[0].is(1);
      require_axes(x, x.shape(i), {shared ? Dim(1) : batch, length, width}, what);
    }
  }
  if (x.has(3)) {
    x.require(x.dtype(3) == DType::kI64 || x.dtype(3) == DType::kI32, "position_ids are not integers");
    x.require(x.rank(3) == 2, fmt::format("position_ids {} have not two axes", text(x.shape(3))));
    require_axes(x, x.shape(3), {batch, length}, "position_ids");
  }
  x.same(0, 0);
}

void eval_rotary(Evaluation& e) {
  const Tensor& x = e.in[0];
  const bool flat = x.rank() == 3;
  const int64_t length = x.dim(flat ? 1 : 2),
                heads = flat ? e.attributes().integer("num_heads", 1) : x.dim(1);
  const int64_t head = flat ? x.dim(2) / heads : x.dim(3);
  const int64_t given = e.attributes().integer("rotary_embedding_dim", 0), turned = given == 0 ? head : given;
  const int64_t half = turned / 2;
  const bool interleaved = e.attributes().integer("interleaved", 0) != 0;
  const bool full = e.attributes().integer("full_angles", 0) != 0;
  const auto angle_of = [&](const Tensor& cache, int64_t b, int64_t s, int64_t element) {
    int64_t row = (cache.dim(0) == 1 ? 0 : b) * length + s;
    if (e.has(3)) row = e.in[3].integer(b * length + s);
    const int64_t pair = interleaved ? element / 2 : element % half;
    return cache.real(full ? row * turned + element : row * half + pair);
  };
  Tensor y(x.dtype(), x.shape());
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t s = 0; s < length; ++s) {
      if (e.has(3)) {
        const int64_t position = e.in[3].integer(b * length + s);
        if (position < 0 || position >= e.in[1].dim(0))
          e.fail(fmt::format("position {} of {}", position, e.in[1].dim(0)));
      }
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t at = (flat ? (b * length + s) * heads + h : (b * heads + h) * length + s) * head;
        for (int64_t j = turned; j < head; ++j) y.set_real(at + j, x.real(at + j));
        for (int64_t j = 0; j < half; ++j) {
          const int64_t first = interleaved ? 2 * j : j, second = interleaved ? first + 1 : first + half;
          const double a = x.real(at + first), c = x.real(at + second);
          y.set_real(at + first, angle_of(e.in[1], b, s, first) * a - angle_of(e.in[2], b, s, first) * c);
          y.set_real(at + second, angle_of(e.in[2], b, s, second) * a + angle_of(e.in[1], b, s, second) * c);
        }
      }
    }
  e.out[0] = y;
}

}  // namespace

AttentionForm attention_form(const Node& n, const Shape& q, const Shape& k, const Shape& v, const Shape* past,
                             const std::function<void(const std::string&)>& fail) {
  AttentionForm f;
  const Attributes& a = n.attributes;
  if (q.size() != k.size() || q.size() != v.size() || (q.size() != 3 && q.size() != 4))
    fail(fmt::format("Q {}, K {} and V {} have not all three or all four axes", text(q), text(k), text(v)));
  f.batch = q[0];
  if (q.size() == 3) {
    const int64_t heads = a.integer("q_num_heads", 0), kv_heads = a.integer("kv_num_heads", 0);
    if (heads <= 0 || kv_heads <= 0)
      fail(fmt::format("tensors of three axes need q_num_heads and kv_num_heads, which are {} and {}", heads,
                       kv_heads));
    f.q = f.k = f.v = f.y = HeadLayout::kPositionsFirst;
    f.q_heads = Dim(heads);
    f.kv_heads = Dim(kv_heads);
    f.q_length = q[1];
    f.kv_length = k[1];
    f.head = exact_div(q[2], f.q_heads);
    f.v_head = exact_div(v[2], f.kv_heads);
  } else {
    const std::vector<int64_t> flags = a.integers("positions_first", {0, 0, 0, 0});
    if (flags.size() != 4) fail("positions_first has not four flags");
    const auto layout = [&](size_t i) {
      return flags[i] ? HeadLayout::kPositionsFirst : HeadLayout::kHeadsFirst;
    };
    f.q = layout(0), f.k = layout(1), f.v = layout(2), f.y = layout(3);
    f.q_heads = q[flags[0] ? 2 : 1];
    f.q_length = q[flags[0] ? 1 : 2];
    f.kv_heads = k[flags[1] ? 2 : 1];
    f.kv_length = k[flags[1] ? 1 : 2];
    f.head = q[3];
    f.v_head = v[3];
  }
  if (past && past->size() == 4) f.past = (*past)[2];
  f.total = f.past + f.kv_length;
  if (a.has("scale"))
    f.scale = static_cast<double>(a.real("scale", 1));
  else if (f.head.is_static() && f.head.value() > 0)
    f.scale = 1 / std::sqrt(static_cast<double>(f.head.value()));
  else
    f.scale = std::numeric_limits<double>::quiet_NaN();
  if (a.has("scale") && !std::isfinite(f.scale)) fail(fmt::format("scale is {}", f.scale));
  f.causal = a.integer("is_causal", 0) != 0;
  f.softcap = a.real("softcap", 0);
  if (!(f.softcap >= 0) || std::isinf(f.softcap)) fail(fmt::format("softcap is {}", f.softcap));
  f.left = a.integer("left_window_size", -1);
  f.right = a.integer("right_window_size", -1);
  if (f.left < -1 || f.right < -1 || f.left > INT32_MAX || f.right > INT32_MAX)
    fail(fmt::format("a window of {} to the left and {} to the right", f.left, f.right));
  f.scores_mode = a.integer("qk_matmul_output_mode", 0);
  if (f.scores_mode < 0 || f.scores_mode > 3) fail(fmt::format("qk_matmul_output_mode is {}", f.scores_mode));
  f.masked_rows_are_zero = a.integer("nan_rows", 0) == 0;
  return f;
}

AttentionForm attention_form(const Node& n) {
  const Value* past = n.input(kPastKey);
  return attention_form(n, n.inputs[kQ]->type.shape, stored_shape(n.inputs[kK]->type),
                        stored_shape(n.inputs[kV]->type), past ? &past->type.shape : nullptr,
                        [](const std::string& why) { bug(__FILE__, __LINE__, why); });
}

void set_layouts(Node& n, HeadLayout q, HeadLayout k, HeadLayout v, HeadLayout y) {
  std::vector<int64_t> flags;
  for (const HeadLayout l : {q, k, v, y}) flags.push_back(l == HeadLayout::kPositionsFirst ? 1 : 0);
  n.attributes.set("positions_first", flags);
}

bool may_attend_in_halves(const Node& n) {
  constexpr int64_t kMostKeys = 1024;  // of one block (kernels/sequences/attention.cpp)
  for (size_t i = kY + 1; i < n.outputs.size(); ++i)
    if (n.outputs[i]) return false;
  if (n.input(kPastKey) || n.input(kPastValue) || n.epilogue) return false;
  const AttentionForm f = attention_form(n);
  return !f.q_length.is(1) && f.total.hi() <= kMostKeys && f.left < 0 && f.softcap == 0 &&
         f.head.is_static() && f.v_head.is_static();
}

const std::vector<Op>& ops_attention() {
  static const std::vector<Op> table = {
      {.name = "Attention",
       .min_inputs = 3,
       .max_inputs = 7,
       .max_outputs = 4,
       .infer = infer_attention,
       .eval = eval_attention},
      // The same of caches in the state that are stored as halves, or as rows_to_bytes makes them.
      {.name = "cached_attention",
       .domain = "sinter",
       .min_inputs = 3,
       .max_inputs = 7,
       .infer = infer_attention,
       .eval = eval_attention},
      {.name = "RotaryEmbedding",
       .min_inputs = 3,
       .max_inputs = 4,
       .infer = infer_rotary,
       .eval = eval_rotary},
  };
  return table;
}

}  // namespace sinter
