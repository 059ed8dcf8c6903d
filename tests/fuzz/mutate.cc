#include "fuzz/mutate.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

#include "ops/op.h"

namespace sinter::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Schema {
  const char* name;
  const char* attributes;
};
constexpr Schema kSchemas[] = {
#define SCHEMA(name, first, attributes) {#name, attributes},
#include "import/schemas.def"
#undef SCHEMA
};

size_t below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }
template <class T>
const T& pick(Random& random, const std::vector<T>& from) {
  return from[below(random, from.size())];
}

// What would end a comment, a literal or a line of generated code, if it were copied there.
const char* const kHostileNames[] = {"*/\n#error /*",
                                     "\"\n#error\n\"",
                                     "\\\n#error",
                                     "\?\?/\n#error",
                                     "'\n#error\n'",
                                     ")\"\n#error",
                                     "../../x",
                                     "%n%s",
                                     "\xff\xfe",
                                     "int",
                                     "",
                                     "a b",
                                     "4",
                                     "net"};

int64_t integer(Random& random, int64_t old) {
  static const std::vector<int64_t> kInteresting = {0,
                                                    1,
                                                    -1,
                                                    2,
                                                    3,
                                                    4,
                                                    5,
                                                    7,
                                                    8,
                                                    16,
                                                    64,
                                                    255,
                                                    1000,
                                                    -2,
                                                    -3,
                                                    -8,
                                                    65536,
                                                    int64_t{1} << 31,
                                                    (int64_t{1} << 31) - 1,
                                                    -(int64_t{1} << 31),
                                                    int64_t{1} << 33,
                                                    int64_t{1} << 53,
                                                    int64_t{1} << 62,
                                                    std::numeric_limits<int64_t>::max(),
                                                    std::numeric_limits<int64_t>::min()};
  const auto unsigned_old = static_cast<uint64_t>(old);
  switch (below(random, 6)) {
    case 0: return static_cast<int64_t>(unsigned_old + 1);
    case 1: return static_cast<int64_t>(unsigned_old - 1);
    case 2: return static_cast<int64_t>(0 - unsigned_old);
    case 3: return static_cast<int64_t>(below(random, 6));
    default: return pick(random, kInteresting);
  }
}

double real(Random& random, double old) {
  static const std::vector<double> kInteresting = {0,     1,    -1,    0.5,  2,    1e-5,  1e30,
                                                   -1e30, 1e38, 1e300, -0.0, 0.25, 1e-40, 3.5};
  switch (below(random, 5)) {
    case 0: return -old;
    case 1: return old * 2;
    case 2:
      return below(random, 2) ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
    default: return pick(random, kInteresting);
  }
}

// A message of the model and where it is.
struct Place {
  Message* message;
  int depth;
};

void collect(Message& m, int depth, std::vector<Place>& out) {
  if (out.size() > 2000) return;
  out.push_back({&m, depth});
  const Reflection& r = *m.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(m, &fields);
  for (const FieldDescriptor* f : fields) {
    if (f->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!f->is_repeated()) collect(*r.MutableMessage(&m, f), depth + 1, out);
    for (int i = 0; f->is_repeated() && i < r.FieldSize(m, f); ++i)
      collect(*r.MutableRepeatedMessage(&m, f, i), depth + 1, out);
  }
}

// Names in use: of values, operators, functions.
std::vector<std::string> names_of(const std::vector<Place>& places) {
  std::set<std::string> names;
  for (const Place& p : places) {
    if (const auto* n = dynamic_cast<const onnx::NodeProto*>(p.message)) {
      names.insert(n->input().begin(), n->input().end());
      names.insert(n->output().begin(), n->output().end());
    }
    if (const auto* v = dynamic_cast<const onnx::ValueInfoProto*>(p.message)) names.insert(v->name());
    if (const auto* t = dynamic_cast<const onnx::TensorProto*>(p.message)) names.insert(t->name());
  }
  return {names.begin(), names.end()};
}

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, Random& random, const onnx::ModelProto* other)
      : model_(model), random_(random), other_(other) {}

  void run() {
    places_.clear();
    collect(model_, 0, places_);
    names_ = names_of(places_);
    switch (below(random_, 8)) {
      case 0: return change_operator();
      case 1: return add_node();
      case 2: return change_tensor();
      case 3: return change_attribute();
      default: return change_field();
    }
  }

 private:
  template <class M>
  M* any() {
    std::vector<M*> found;
    for (const Place& p : places_)
      if (auto* m = dynamic_cast<M*>(p.message)) found.push_back(m);
    return found.empty() ? nullptr : pick(random_, found);
  }

  std::string text(const std::string& old) {
    switch (below(random_, 8)) {
      case 0: return pick(random_, words());
      case 1: return kHostileNames[below(random_, std::size(kHostileNames))];
      case 2: return old + "_";
      default: return names_.empty() ? old : pick(random_, names_);
    }
  }
  // raw_data and the like.
  std::string bytes(std::string old) {
    if (old.size() > 256 || below(random_, 3) == 0) old.resize(below(random_, 65));
    for (size_t k = below(random_, 5); k > 0 && !old.empty(); --k)
      old[below(random_, old.size())] = static_cast<char>(random_());
    return old;
  }

  // An operator of the table; one of our own, which models must not use, seldom.
  const Op& any_op() {
    const Op* op = pick(random_, all_ops());
    if (op->domain == std::string_view("sinter") && below(random_, 20)) return any_op();
    return *op;
  }

  void change_operator() {
    auto* n = any<onnx::NodeProto>();
    if (!n) return;
    const Op& op = any_op();
    n->set_op_type(op.name);
    n->set_domain(op.domain);
  }

  // A node of some operator between values there are, or one of the other model.
  void add_node() {
    auto* g = any<onnx::GraphProto>();
    if (!g) return;
    onnx::NodeProto n;
    if (other_ && other_->graph().node_size() > 0 && below(random_, 2)) {
      n = other_->graph().node(
          static_cast<int>(below(random_, static_cast<size_t>(other_->graph().node_size()))));
      for (const auto& t : other_->graph().initializer()) *g->add_initializer() = t;
    } else {
      const Op& op = any_op();
      n.set_op_type(op.name);
      n.set_domain(op.domain);
      const int inputs = op.min_inputs + static_cast<int>(below(random_, 3));
      for (int i = 0; i < inputs; ++i) n.add_input();
    }
    for (std::string& i : *n.mutable_input())
      if (!names_.empty() && (i.empty() || below(random_, 2))) i = pick(random_, names_);
    if (n.output_size() == 0) n.add_output();
    // It takes the place of a value, whose old maker gets another name: so it is between them.
    if (g->node_size() > 0) {
      auto& old = *g->mutable_node(static_cast<int>(below(random_, static_cast<size_t>(g->node_size()))));
      if (old.output_size() > 0 && !old.output(0).empty()) {
        const std::string name = old.output(0), moved = name + "_";
        old.set_output(0, moved);
        *n.mutable_output(0) = name;
        if (n.input_size() > 0 && below(random_, 4)) n.set_input(0, moved);
      }
    }
    *g->add_node() = n;
  }

  void change_tensor() {
    auto* t = any<onnx::TensorProto>();
    if (!t) return;
    if (other_ && other_->graph().initializer_size() > 0 && below(random_, 4) == 0) {
      const std::string name = t->name();
      *t = other_->graph().initializer(
          static_cast<int>(below(random_, static_cast<size_t>(other_->graph().initializer_size()))));
      t->set_name(name);
      return;
    }
    // A tensor that holds what its shape wants: few zeros or small numbers in int64, float and other types.
    static const std::vector<int> kTypes = {1, 6, 7, 9, 10, 11, 2, 3, 16, 5, 12, 13, 4, 17, 21, 22};
    const std::string name = t->name();
    t->Clear();
    t->set_name(name);
    t->set_data_type(pick(random_, kTypes));
    size_t size = 1;
    for (size_t rank = below(random_, 4); rank > 0; --rank) {
      t->add_dims(static_cast<int64_t>(below(random_, 4)));
      size *= static_cast<size_t>(t->dims(t->dims_size() - 1));
    }
    for (size_t i = 0; i < size; ++i) {
      const int type = t->data_type();
      if (type == 7)
        t->add_int64_data(integer(random_, static_cast<int64_t>(i)));
      else if (type == 1)
        t->add_float_data(static_cast<float>(real(random_, static_cast<double>(i))));
      else if (type == 11)
        t->add_double_data(real(random_, static_cast<double>(i)));
      else if (type == 12 || type == 13)
        t->add_uint64_data(below(random_, 9));
      else
        t->add_int32_data(static_cast<int>(below(random_, 9)) -
                          (type == 6 || type == 3 || type == 5 ? 4 : 0));
    }
  }

  // An attribute that the operator has, with a value of some type.
  void change_attribute() {
    auto* n = any<onnx::NodeProto>();
    if (!n) return;
    std::vector<std::string> known;
    for (const Schema& s : kSchemas)
      if (n->op_type() == s.name) {
        std::istringstream in(s.attributes);
        for (std::string word; in >> word;) known.push_back(word);
      }
    const std::string name = known.empty() ? pick(random_, words()) : pick(random_, known);
    onnx::AttributeProto* a = nullptr;
    for (auto& existing : *n->mutable_attribute())
      if (existing.name() == name) a = &existing;
    const auto old_type = a ? a->type() : onnx::AttributeProto::UNDEFINED;
    if (!a) a = n->add_attribute();
    const std::vector<int64_t> old(a->ints().begin(), a->ints().end());
    static const std::vector<onnx::AttributeProto::AttributeType> kTypes = {
        onnx::AttributeProto::INT, onnx::AttributeProto::INTS, onnx::AttributeProto::FLOAT,
        onnx::AttributeProto::FLOATS, onnx::AttributeProto::STRING};
    const bool keep = std::find(kTypes.begin(), kTypes.end(), old_type) != kTypes.end() && below(random_, 8);
    const auto type = keep ? old_type : pick(random_, kTypes);
    const int64_t was = a->i();
    a->Clear();
    a->set_name(name);
    a->set_type(type);
    const size_t count = old.empty() || below(random_, 3) == 0 ? below(random_, 5) : old.size();
    if (type == onnx::AttributeProto::INT) a->set_i(integer(random_, was));
    if (type == onnx::AttributeProto::FLOAT) a->set_f(static_cast<float>(real(random_, 1)));
    if (type == onnx::AttributeProto::STRING) a->set_s(text(""));
    for (size_t i = 0; i < count; ++i) {
      const bool kept = i < old.size() && below(random_, 3);
      if (type == onnx::AttributeProto::INTS) a->add_ints(kept ? old[i] : integer(random_, 1));
      if (type == onnx::AttributeProto::FLOATS) a->add_floats(static_cast<float>(real(random_, 1)));
    }
  }

  void change_field() {
    const Place& place = pick(random_, places_);
    Message& m = *place.message;
    const Reflection& r = *m.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    r.ListFields(m, &fields);
    const auto& d = *m.GetDescriptor();
    const bool add = fields.empty() || below(random_, 8) == 0;
    const FieldDescriptor* f =
        add ? d.field(static_cast<int>(below(random_, static_cast<size_t>(d.field_count()))))
            : pick(random_, fields);
    if (f->is_repeated())
      change_repeated(m, f);
    else if (!add && below(random_, 8) == 0)
      r.ClearField(&m, f);
    else if (f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      copy_message(*r.MutableMessage(&m, f));
    else
      set_scalar(m, f, -1);
  }

  void change_repeated(Message& m, const FieldDescriptor* f) {
    const Reflection& r = *m.GetReflection();
    const int n = r.FieldSize(m, f);
    const int at = static_cast<int>(below(random_, static_cast<size_t>(n)));
    switch (n == 0 ? 0 : below(random_, 5)) {
      case 0:  // one more
        if (f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          copy_message(*r.AddMessage(&m, f));
        else
          set_scalar(m, f, n);
        return;
      case 1: r.SwapElements(&m, f, at, n - 1); return r.RemoveLast(&m, f);
      case 2: return r.SwapElements(&m, f, at, static_cast<int>(below(random_, static_cast<size_t>(n))));
      default:
        if (f->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          copy_message(*r.MutableRepeatedMessage(&m, f, at));
        else
          set_scalar(m, f, at);
    }
  }

  // Another message of the same kind; graphs only while that doesn't make models grow without end.
  void copy_message(Message& to) {
    places_.clear();  // where `to` is one of several alternatives, another one may have gone
    collect(model_, 0, places_);
    std::vector<const Message*> same;
    for (const Place& p : places_)
      if (p.message != &to && p.message->GetDescriptor() == to.GetDescriptor() &&
          p.message->ByteSizeLong() < 1500)
        same.push_back(p.message);
    if (same.empty()) return;
    const std::unique_ptr<Message> copy(to.New());  // `to` may be inside of what it becomes
    copy->CopyFrom(*pick(random_, same));
    to.CopyFrom(*copy);
  }

  // Element `index` of a repeated field (its size: one more), or a single field (-1).
  void set_scalar(Message& m, const FieldDescriptor* f, int index) {
    const Reflection& r = *m.GetReflection();
    const bool more = index >= 0 && index >= r.FieldSize(m, f);
#define SINTER_SET(Type, value)                                      \
  do {                                                               \
    auto old = decltype(r.Get##Type(m, f)){};                        \
    if (index >= 0 && !more) old = r.GetRepeated##Type(m, f, index); \
    if (index < 0) old = r.Get##Type(m, f);                          \
    const auto made = value;                                         \
    if (more)                                                        \
      r.Add##Type(&m, f, made);                                      \
    else if (index >= 0)                                             \
      r.SetRepeated##Type(&m, f, index, made);                       \
    else                                                             \
      r.Set##Type(&m, f, made);                                      \
    return;                                                          \
  } while (false)
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: SINTER_SET(Int32, static_cast<int32_t>(integer(random_, old)));
      case FieldDescriptor::CPPTYPE_INT64: SINTER_SET(Int64, integer(random_, old));
      case FieldDescriptor::CPPTYPE_UINT64:
        SINTER_SET(UInt64, static_cast<uint64_t>(integer(random_, static_cast<int64_t>(old))));
      case FieldDescriptor::CPPTYPE_FLOAT: SINTER_SET(Float, static_cast<float>(real(random_, double{old})));
      case FieldDescriptor::CPPTYPE_DOUBLE: SINTER_SET(Double, real(random_, old));
      case FieldDescriptor::CPPTYPE_ENUM:
        SINTER_SET(EnumValue, old * 0 + static_cast<int>(below(random_, 16)));
      case FieldDescriptor::CPPTYPE_STRING: {
        const bool raw = f->type() == FieldDescriptor::TYPE_BYTES && f->name() == "raw_data";
        SINTER_SET(String, raw ? bytes(old) : text(old));
      }
      default: return;
    }
#undef SINTER_SET
  }

  onnx::ModelProto& model_;
  Random& random_;
  const onnx::ModelProto* other_;
  std::vector<Place> places_;
  std::vector<std::string> names_;
};

}  // namespace

void mutate(onnx::ModelProto& model, Random& random, const onnx::ModelProto* other) {
  Mutator m(model, random, other);
  for (size_t k = 1 + below(random, 4); k > 0; --k) m.run();
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> all = [] {
    std::set<std::string> out = {"SAME_UPPER",
                                 "SAME_LOWER",
                                 "VALID",
                                 "NOTSET",
                                 "linear",
                                 "nearest",
                                 "cubic",
                                 "constant",
                                 "edge",
                                 "reflect",
                                 "wrap",
                                 "add",
                                 "mul",
                                 "max",
                                 "min",
                                 "none",
                                 "sum",
                                 "mean",
                                 "LEFT",
                                 "RIGHT",
                                 "DCR",
                                 "CRD",
                                 "forward",
                                 "reverse",
                                 "bidirectional",
                                 "Tanh",
                                 "Sigmoid",
                                 "Relu",
                                 "half_pixel",
                                 "asymmetric",
                                 "align_corners",
                                 "tf_crop_and_resize",
                                 "floor",
                                 "ceil",
                                 "zeros",
                                 "border",
                                 "bilinear",
                                 "ij,jk->ik",
                                 "...i->...",
                                 "ii->i",
                                 "ai.onnx.ml",
                                 "com.microsoft",
                                 "ai.onnx",
                                 "NHWC",
                                 "BRANCH_LEQ",
                                 "NONE",
                                 "SOFTMAX",
                                 "LINEAR",
                                 "RBF"};
    for (const Op* op : all_ops()) out.insert(op->name);
    for (const Schema& s : kSchemas) {
      out.insert(s.name);
      std::istringstream in(s.attributes);
      for (std::string word; in >> word;) out.insert(word);
    }
    return std::vector<std::string>(out.begin(), out.end());
  }();
  return all;
}

}  // namespace sinter::fuzz
