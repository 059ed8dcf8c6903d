// What a normalisation is to the kernel that writes it: which axes are reduced, what the factor is, and how
// scale and bias lie along the axes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "emit/epilogue.h"

namespace sinter {

enum class Factor {
  kDeviation,       // 1 / sqrt(variance + epsilon)
  kPlainDeviation,  // 1 / (sqrt(variance) + 1e-9)
  kL1,              // 1 / sum |x|, 0 for 0; no mean
  kL2,              // 1 / sqrt(sum x^2), 0 for 0; no mean
  kRms,             // 1 / sqrt(mean x^2 + epsilon); no mean
};

struct NormAxis {
  Dim extent;
  bool reduced = false;
  Dim scale, bias;  // strides of those operands
  size_t out = 0;   // this axis's index times `factor` is part of the index of this axis of the output
  Dim factor = Dim(1);
};

struct Norm {
  std::vector<NormAxis> axes;  // row-major over x
  Factor factor = Factor::kDeviation;
  double epsilon = 1e-5;
  int scale = -1, bias = -1;  // inputs; -1: none
  int mean_output = -1, factor_output = -1;
};

bool subtracts_mean(Factor);
Dim reduced_count(const Norm&);  // elements of a set
// Scale and bias are contiguous or one number along the last axis.
bool has_unit_operands(const Norm&);
// Whether the reduced axes are neighbours with one axis behind them; scale and bias only follow that.
bool reduces_columns(const Norm&);
// Whether all is float32 and the epilogue, if any, runs in vectors.
bool runs_in_vectors(const Node&, const Norm&);
// The factor of a vector of columns from the sums of their squares (or of |x|), as text. `count`: how many
// there were, a float.
std::string vector_factor(const Norm&, const std::string& squares, const std::string& count);
// The extent as a float, as text.
std::string float_text(LayerWriter&, const Dim&);
// The index of the output's element, for the epilogue, from that over the norm's axes.
std::vector<std::string> output_index(LayerWriter&, const Norm&, const std::vector<std::string>& index);

// Null for other operators, and where an operand broadcasts along an extent that is open.
std::optional<Norm> norm_of(const Node&);
// Axes of extent 1 vanish; neighbours become one where every operand and the epilogue let them.
void merge_axes(Norm&, const Epilogue&);

}  // namespace sinter
