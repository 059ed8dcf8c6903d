// libFuzzer target: any bytes as a model file. libFuzzer mutates them, with the words of the dictionary.
#include "fuzz/chain.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  onnx::ModelProto model;
  if (sinter::fuzz::parse(bytes, model)) sinter::fuzz::compile(model, sinter::fuzz::choice_of(bytes));
  return 0;
}
