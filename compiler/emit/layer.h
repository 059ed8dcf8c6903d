// LayerWriter: what a kernel writes its C++ with. One layer of the plan becomes one function.
//
// A kernel asks for the things it needs: the pointers of its node's tensors, packed weights, scratch memory,
// extents. Each becomes a parameter of the function, so the body holds no address and no name of the model;
// two layers with the same body and the same parameter types are emitted once and called twice. Where the
// tensors lie is decided afterwards (plan/memory.cpp), when every layer's scratch is known.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emit/candidate.h"
#include "emit/element.h"
#include "emit/printer.h"
#include "ir/graph.h"
#include "plan/decision.h"
#include "targets/target.h"

namespace sinter {

// The weights of a plan: blobs of packed bytes, and NAME.weights, which has those that the plan's layers use
// at 64-byte aligned offsets. Equal blobs are stored once. A plan that is made again gives places anew, and
// what layers had before they changed gets none.
class WeightStore {
 public:
  // The number of the blob that has these bytes.
  size_t add(const void* data, size_t bytes);
  // Its offset in NAME.weights, where blobs lie in the order of the first calls.
  int64_t place(size_t blob);
  void forget_places();
  int64_t size() const { return size_; }  // of NAME.weights
  // NAME.weights. The blobs turn into it: none can be added or placed afterwards.
  const std::string& bytes() const;
  // The same, which the store then has no more; there is room behind it for the tag of a bundle.
  std::string take();

 private:
  struct Blob {
    std::string bytes;
    int64_t offset = -1;
  };
  mutable std::vector<Blob> blobs_;
  std::vector<size_t> placed_;
  int64_t size_ = 0;
  mutable std::string file_;
  mutable bool is_file_ = false;
  std::map<std::pair<uint64_t, size_t>, std::vector<size_t>> by_hash_;
};

struct Parameter {
  enum class Kind { kInput, kOutput, kWeights, kScratch, kSymbol, kCount, kPool, kRow };
  Kind kind;
  std::string type;  // "const float*"
  std::string name;
  std::string comment;           // shape and layout: "[N][56][56][64]"
  const Value* value = nullptr;  // kInput, kOutput
  size_t blob = 0;               // kWeights: in the store
  int64_t offset = 0;            // kWeights: in NAME.weights, once the plan is made
  int64_t bytes = 0;             // kWeights, kScratch (at the bounds)
  int64_t more_parts = 0;        // kScratch: bytes of those that parts beyond the first take
  SymbolPtr symbol;              // kSymbol: passed by value; kCount: std::int64_t* that the layer sets
  // kPool: the threads that the layer's parts run on; kRow: a number of a row, by its name (plan/strips.cpp)
};

// Where parts that make up a whole layer are rows: part p computes the rows starts[p] to before starts[p + 1]
// of all results, and of the Values `alike` it reads the same rows only.
struct RowParts {
  std::vector<int64_t> starts;
  std::vector<const Value*> alike;
};

// What of a kernel the planner asks: what it has a Limit for, and whether it calls code that is not ours.
enum class Algorithm { kPlain, kWinograd, kStrassen, kTileMatrices, kForeign };

// What most of a kernel's time goes into, for the model of its cost (plan/cost.h): vector arithmetic or
// moving (an element of the operands after the other), multiply-adds in register tiles, multiply-adds that
// load both factors, loops over single elements.
enum class Work { kVectors, kProducts, kTaps, kLoops };

struct Layer {
  const Node* node = nullptr;
  std::string function;  // C++ identifier
  std::string kernel;    // the kernel's name: "conv_direct"
  Algorithm algorithm = Algorithm::kPlain;
  Work work = Work::kLoops;
  std::string summary;  // "Conv 3x3, stride 1, 16 -> 32 channels, relu"
  std::vector<Parameter> parameters;
  std::string helpers;  // namespace-scope text before the function (templates named after the layer)
  std::string body;
  std::vector<std::string> includes;         // runtime headers: "sinter/mac.h"
  std::map<std::string, std::string> files;  // of the bundle, by name: what a custom operator brings along
  bool can_fail = false;                     // returns an int error code
  Subnormals subnormals = Subnormals::kNumbers;
  double flops = 0;  // multiply-accumulates count 2; at the bounds
  // Inputs whose memory the first output may take over: element i is read no later than element i is written.
  std::vector<const Value*> may_overwrite;
  std::optional<RowParts> row_parts;
  double chosen_at = 0;             // modelled cycles, where its kernel has a model of its own
  std::vector<WeightOffer> offers;  // weight_offers of emit/candidate.h
  int shares = 1;     // of a Loop or Scan: the threads that share its iterations (plan/control.cpp)
  size_t region = 1;  // layers, from this one on, that threads run through (plan/parallel_regions.h)
};

// The C++ variable of a symbol: N, dim_batch_size. The model's name alone might be a keyword, or a variable
// of a kernel; kernels must not call anything by a single capital letter or by a name that begins with dim_.
std::string variable(const Symbol& s);

// Flops in the time that an element of the result takes by being moved: in runs, and otherwise; and that one
// takes that is filled, whose line another core's cache would have to hand over.
inline constexpr double kInRuns = 4, kOneByOne = 16, kFilled = 0.25;

// The context as the node's kernels see it: of a target that computes in the node's element.
Context context_of(const Node&, const Context&);

class LayerWriter {
 public:
  LayerWriter(const Node& node, const Context& context, WeightStore& store, std::string function,
              int threads = 1);

  const Node& node;
  const Context context;
  const Target& target;      // as layers see it that compute in `element`
  const Element& element;    // what the node computes in where that is floats
  const Decision& decision;  // of the node
  const int threads;         // that the net may use; 1: no loop is cut into parts
  Printer out;               // the function's body
  Printer helpers;           // text before the function; names in it must begin with function()

  const std::string& function() const { return layer_.function; }
  // The pointer of node.inputs[i] / outputs[i], typed by its dtype; the same name for the same value.
  std::string input(size_t i);
  std::string output(size_t i);
  // The pointer of a Value that stands behind an input (picture_pieces of plan/decision.h).
  std::string read(const Value* v) { return read(v, false); }
  // Bytes that are packed now and read at run time. `type`: "float".
  std::string weights(const std::string& name, const std::string& type, const void* data, size_t bytes,
                      const std::string& comment);
  // The same of numbers, rounded to the node's element.
  std::string weights(const std::string& name, const std::vector<float>& data, const std::string& comment);
  // Memory that lives while the layer runs; 64-byte aligned. `count` elements of `type`, at the bounds;
  // "float" stands for the node's element.
  std::string scratch(const std::string& name, const std::string& type, int64_t count);
  // The same for each part of the loop that is open (open_parts): the text of its own piece.
  std::string scratch_of_part(const std::string& name, const std::string& type, int64_t count);
  // ... of floats, whatever the node's element is.
  std::string floats_of_part(const std::string& name, int64_t count) {
    return scratch_of_part(name, kFloats, count);
  }
  // Opens what may run as parts on several threads: turns [0, count) of a loop, of which the part is to do
  // those from `first` to before `end`. A turn writes only what no other one reads or writes, and sums up
  // nothing with another, so that the number of threads changes no bit. Where the net has one thread, or the
  // layer is small (worth_parts of what flops() was told and of the result's elements), or a part is open
  // already, or parts are strips, it is all turns and no text. No return statement may stand inside.
  struct Turns {
    std::string first, end;
  };
  Turns open_parts(const std::string& count, double flops_of_element = kInRuns);
  void close_parts();
  // Opens what is done for each picture `n` of so many, where parts of one picture wait for each other or are
  // few. Where threads can take pictures, each takes as many, with nothing that open_parts cuts inside of
  // them; pictures that are left over are done one at a time, in parts. Scratch is then scratch_of_part's.
  void open_pictures(const Dim& count);
  void close_pictures();
  // Says of the `turns` just opened, which make up the whole layer, that they are rows of the first result
  // and of those behind the anchor's inputs that are as large: turn i begins with row first_row(i),
  // first_row(turns) is behind the last. `input`: a turn reads the same rows of the first input, too.
  void parts_are_rows(int64_t turns, const std::function<int64_t(int64_t)>& first_row, bool input);
  // Where the node is one of a group that runs strip by strip (plan/strips.cpp): it computes the rows [first,
  // end) of its output's first spatial axis; row x_base of its input is the first in memory, row y_base of
  // its output. Texts; bases are empty where the whole tensor is in memory. No value: all rows.
  struct Strip {
    std::string first, end, x_base, y_base;
  };
  std::optional<Strip> strip();
  // Channels from one pixel of a channels-last Value in memory to the next; of the first output.
  Dim pixel_stride(const Value& v) const { return context.decisions.pixel_stride(v); }
  Dim pixel_stride() const { return pixel_stride(*node.outputs[0]); }
  // Whether some input has others' channels between its pixels.
  bool reads_gaps() const { return context.decisions.reads_gaps(node); }
  // An extent as C++ text: a literal, or an expression over parameters (std::int64_t).
  std::string dim(const Dim& d);
  // The variable (std::int64_t*) through which the layer reports a count it has found: `*count_n = 7;`
  std::string count(const Dim& symbol);
  void include(const std::string& header);
  void include_storage(DType);  // the header that defines cpp_name(dtype)
  // A file that the bundle must hold; those in "custom/" that are sources are compiled.
  void file(const std::string& name, const std::string& text) { layer_.files[name] = text; }
  void summary(const std::string& text) { layer_.summary = text; }
  void flops(const Dim& count);
  void may_overwrite(size_t input) { layer_.may_overwrite.push_back(node.inputs[input]); }
  void can_fail() {
    layer_.can_fail = true;
  }  // the body may `return kIndexError;` and must end by returning 0

  // How the node is to be computed, as its kernel's record says (Candidate::way). By default what choose()
  // says.
  void take(Candidate c) { candidate_ = std::move(c); }
  template <class T>
  T way() const {
    if (!candidate_) candidate_ = choose_candidate();
    return std::any_cast<T>(candidate_->way);
  }

  Layer finish(const std::string& kernel, Algorithm algorithm = Algorithm::kPlain);

 private:
  Candidate choose_candidate() const;
  static constexpr const char* kFloats = "const float";  // a type of scratch
  std::string read(const Value* v, bool planar);
  std::string add(Parameter p);
  void add_pool();
  bool is_large(double flops_of_element) const;  // worth_parts
  bool in_parts() const;
  bool shares_pictures() const { return way_ == Pictures::kShared; }
  Layer layer_;
  std::vector<bool> parts_;  // whether each open_parts that is open has made parts
  Dim pictures_{1};          // what open_pictures was told
  // How they are done: as parts, one after another, or (kShared) as parts but for those left over.
  enum class Pictures { kParts, kInTurn, kShared } way_ = Pictures::kParts;
  WeightStore& store_;
  mutable std::optional<Candidate> candidate_;
  Names names_;
  std::map<const Value*, std::string> input_names_, output_names_;
};

// A kernel: one way to run some nodes, one row of kernels.def.
struct Kernel {
  const char* name;  // "conv_direct"
  const char* what;  // one line for docs
  bool (*accepts)(const Node&, const Context&);
  void (*emit)(LayerWriter&);
  // What it can do beyond computing whole tensors whose pixels lie side by side.
  struct Abilities {
    bool writes_apart = false;  // pixels with others' channels between them (Decision::pixel_stride)
    bool rows = false;          // computes a range of them where the node is in a strip (LayerWriter::strip)
    bool reads_parts = false;   // its picture's pieces, where the node says so (picture_pieces)
    bool reads_apart = false;   // inputs with others' channels between their pixels
    bool reads_nchw = false;    // the planes of a picture of few channels, where the node says so
    bool joins_taps = false;    // takes a kernel row's taps as one run, unless pixels have gaps between them
    Algorithm algorithm = Algorithm::kPlain;
    Work work = Work::kVectors;
  } can = {};
  // The ways that it has to compute a node that it accepts, with their modelled costs, errors not measured.
  // Null, or none of a plain kernel: its place in the table decides. None of another: it is not taken.
  std::vector<Candidate> (*ways)(const Node&, const Context&) = nullptr;
  // Measures the error of one of its ways, and sets what follows from it: `margin`, `why_not`, `way`.
  void (*measure)(const Node&, const Context&, Candidate&) = nullptr;
};

// Whether a layer of so many flops and of a result of so many elements is worth a second thread.
bool worth_parts(double flops, double elements, double flops_of_element);
// Bytes from one part's memory to the next one's: whole lines of the cache, and 8 KB that none uses, because
// processors fetch so much ahead of what a thread reads, which would take lines from the thread that writes
// there.
int64_t apart(int64_t bytes);
// How the node is computed, its inputs where they lie: the cheapest way of all kernels that accept it and
// have a model of their costs; where none that may be taken has, the first that accepts it.
Choice choose(const Node&, const Context&);
// The kernel of it; null where none accepts the node, which is refused.
const Kernel* find_kernel(const Node&, const Context&);
const std::vector<const Kernel*>& all_kernels();

std::string shape_comment(const Shape& shape);  // "[N][56][56][64]", for comments beside pointers

}  // namespace sinter
