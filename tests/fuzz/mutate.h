// Mutations of a model's protobuf: a field changed, removed, repeated or moved, a name or number replaced by
// a more interesting one, an operator by another. The result is a ModelProto again, so that it gets past the
// parser and deep into inference, passes and plan, where changed bytes seldom do.
#pragma once
#include <onnx/onnx_pb.h>

#include <random>
#include <string>
#include <vector>

namespace sinter::fuzz {

using Random = std::minstd_rand;

// One to four mutations. `other` may lend nodes and tensors; null: none.
void mutate(onnx::ModelProto& model, Random& random, const onnx::ModelProto* other = nullptr);

// Words that mean something in a model: operators, attributes, domains, words of string attributes. Sorted.
const std::vector<std::string>& words();

}  // namespace sinter::fuzz
