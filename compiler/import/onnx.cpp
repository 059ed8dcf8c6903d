// From a file's bytes to a Model.
#include "import/onnx.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <fstream>
#include <limits>
#include <new>

#include "import/importer.h"
#include "import/sha256.h"
#include "ir/error.h"
#include "ir/read_files.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::error_code error;
  const std::string name = sinter::quoted(path.string());
  if (!fs::exists(path, error)) refuse("{} does not exist", name);
  if (!fs::is_regular_file(path, error)) refuse("{} is no regular file", name);
  const auto size = fs::file_size(path, error);
  if (error) refuse("{} can't be read: {}", name, error.message());
  if (size > static_cast<uintmax_t>(std::numeric_limits<int>::max()))
    refuse("{} has {} bytes; ONNX's format ends at 2 GiB, beyond that weights are external data", name, size);
  note_read(path);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(size), '\0');
  if (!file || !file.read(bytes.data(), static_cast<std::streamsize>(size))) refuse("{} can't be read", name);
  return bytes;
}

// Runs f; whatever it throws becomes a Refusal.
template <class F>
auto guarded(F f) {
  try {
    return f();
  } catch (const Refusal&) {
    throw;
  } catch (const std::bad_alloc&) {
    refuse("out of memory");
  } catch (const std::exception& e) {
    refuse("the model can't be imported: {}", e.what());
  }
}

// `emptied`: the message may lose its tensors' contents.
Model model_of(const onnx::ModelProto& proto, const fs::path& folder, const ImportOptions& options,
               bool emptied) {
  if (!proto.has_graph()) refuse("not an ONNX model: it has no graph");
  Model m;
  Budget budget;
  const Budget::Use use(budget);
  Weights weights(folder, emptied, budget);
  m.producer = proto.producer_name();
  m.ir_version = proto.ir_version();
  // Operands that are run-time inputs may be told by declared shapes: what one import learns, the next uses.
  Learned learned;
  for (;;) {
    Importer importer(proto, weights, options, learned);
    m.graph = importer.run();
    m.warnings = importer.warnings();
    m.class_names = importer.class_names();
    if (learned.final || !importer.learn(learned)) return m;
  }
}

}  // namespace

std::vector<std::string> unknown_field(const google::protobuf::Message& message, int number) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  std::vector<std::string> out;
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& f = fields.field(i);
    if (f.number() == number && f.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      out.push_back(f.length_delimited());
  }
  return out;
}

onnx::ModelProto parse_model(const fs::path& file) {
  std::ifstream bytes(file, std::ios::binary);
  google::protobuf::io::IstreamInputStream pieces(&bytes);
  google::protobuf::io::CodedInputStream stream(&pieces);
  stream.SetRecursionLimit(200);  // three messages a nested body
  onnx::ModelProto proto;
  if (!proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    refuse("not an ONNX model: its protobuf is broken");
  return proto;
}

Model import_model(const onnx::ModelProto& proto, const fs::path& folder, const ImportOptions& options) {
  return guarded([&] { return model_of(proto, folder, options, false); });
}

Model import_model(const fs::path& file, const ImportOptions& options) {
  return guarded([&] {
    std::string hash = sha256_hex(read_file(file));
    const onnx::ModelProto proto = parse_model(file);  // a second time: the file isn't beside the message
    Model m = model_of(proto, fs::absolute(file).parent_path(), options, true);
    m.sha256 = std::move(hash);
    return m;
  });
}

}  // namespace sinter
