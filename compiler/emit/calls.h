// Calls: the calls of a plan's layers in order, with the checks between them; the body of net_run, or of the
// function of an If, Loop or Scan (emit/control.cpp).
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emit/printer.h"
#include "plan/plan.h"

namespace sinter {

// The function that runs each layer: its own, or that of an equal layer. All are called with their namespace,
// so that no variable around a call hides one.
struct Functions {
  std::string scope;  // "net_layers"
  std::map<const Layer*, std::string> names;
};

// Where calls are written: how the tensors around them are spelt there. The arena is `a`, the weights `w`.
struct Frame {
  const Graph& graph;
  const Plan& plan;
  std::vector<std::string> inputs, outputs;  // pointers: of the places kInput and kOutput
  bool bits = false;                         // 16-bit floats among them are std::uint16_t
  std::string error;                         // "NET_E_DIM" is error + "DIM"; empty: sinter::kDimError
  std::string pool = "pool";
};

class Calls {
 public:
  Calls(Printer& p, const Frame& frame, const Functions& functions)
      : p_(p), frame_(frame), functions_(functions) {}

  // The symbol's variable has its value now.
  void define(const Symbol& s) { defined_.insert(&s); }
  bool is_defined(const Symbol& s) const { return defined_.count(&s) != 0; }
  bool known(const Dim& d) const;  // all its symbols are
  static std::string cpp(const Dim& d) { return d.cpp(variable); }
  std::string code(const std::string& name) const;  // "DIM" -> "NET_E_DIM" or "sinter::kDimError"
  void declare_counts();                            // variables of the counts that layers find
  void checks();  // equalities that are left for run time, as soon as their symbols are known
  // Before the calls of layers `first` to before `end`: what subnormal floats are for the processor from here
  // on, where it changes.
  void choose_floats(size_t first, size_t end);
  void restore_floats();  // behind the last call: as it was before the first
  void call(size_t layer);
  // Texts of the kRow parameters of the next calls, by name.
  void set_rows(std::map<std::string, std::string> rows) { rows_ = std::move(rows); }
  // Between these two, calls are those of one thread in a region: `own` is its pool, `part` its number. It
  // computes with floats as the calls before do, in the end again.
  void begin_share(size_t first, size_t end);
  void end_share();
  std::string returning(const std::string& status) const;  // the statement, without its semicolon
  // The argument for a parameter of a layer; `scratch` counts its kScratch parameters.
  std::string argument(const Parameter& q, size_t layer, size_t& scratch) const;

 private:
  void set_zeros(bool zeros);
  bool has(Subnormals s, size_t first, size_t end) const;
  void save_floats();
  Printer& p_;
  const Frame& frame_;
  const Functions& functions_;
  std::set<const Symbol*> defined_;
  std::set<size_t> checked_;
  std::map<std::string, std::string> rows_;
  bool share_ = false;
  // Whether subnormal floats are zeros here, and were before the region; whether `floats` is what they were
  // for the caller.
  bool zeros_ = false, zeros_around_ = false, saved_ = false;
};

// Comments hold symbol origins, which hold the model's names. Quotes stay as they are: nothing ends at them.
std::string printable(const std::string& s);

// The layer of an If, Loop or Scan with its text and with parameters named for it. `functions` has what its
// bodies' layers are called.
Layer written_control(const Layer& layer, const std::vector<Plan>& bodies, const Functions& functions);

}  // namespace sinter
