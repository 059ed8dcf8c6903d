// libFuzzer target: models whose fields are mutated (mutate.h), so that every input is a proper protobuf.
#include <algorithm>

#include "fuzz/chain.h"
#include "fuzz/mutate.h"

namespace {

// `model` in place of the bytes at `data`; 0 where there is no room.
size_t store(const onnx::ModelProto& model, uint8_t* data, size_t max_size) {
  const std::string bytes = model.SerializeAsString();
  if (bytes.size() > std::min(max_size, sinter::fuzz::kMaxBytes)) return 0;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

onnx::ModelProto model_of(const uint8_t* data, size_t size) {
  onnx::ModelProto model;
  if (!sinter::fuzz::parse({reinterpret_cast<const char*>(data), size}, model)) model.Clear();
  return model;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  onnx::ModelProto model;
  if (sinter::fuzz::parse(bytes, model)) sinter::fuzz::compile(model, sinter::fuzz::choice_of(bytes));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  sinter::fuzz::Random random(seed);
  const onnx::ModelProto model = model_of(data, size);
  for (int attempt = 0; attempt < 8; ++attempt) {
    onnx::ModelProto changed = model;
    sinter::fuzz::mutate(changed, random);
    if (const size_t n = store(changed, data, max_size)) return n;
  }
  return size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* one, size_t one_size, const uint8_t* two,
                                            size_t two_size, uint8_t* out, size_t max_size, unsigned seed) {
  sinter::fuzz::Random random(seed);
  onnx::ModelProto model = model_of(one, one_size);
  const onnx::ModelProto other = model_of(two, two_size);
  sinter::fuzz::mutate(model, random, &other);
  return store(model, out, max_size);
}
