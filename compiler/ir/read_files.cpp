#include "ir/read_files.h"

#include <algorithm>
#include <mutex>

namespace sinter {
namespace {

struct Noted {
  std::mutex mutex;
  std::vector<std::string> files;
};
Noted& noted() {
  static Noted all;
  return all;
}

std::string escaped(const std::string& path) {
  std::string s;
  for (const char c : path) {
    if (c == '$') s += '$';
    if (c == ' ' || c == '#') s += '\\';
    s += c;
  }
  return s;
}

}  // namespace

void note_read(const std::filesystem::path& file) {
  std::error_code ec;
  const std::string path = std::filesystem::absolute(file, ec).lexically_normal().string();
  Noted& all = noted();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!ec && std::find(all.files.begin(), all.files.end(), path) == all.files.end())
    all.files.push_back(path);
}

std::vector<std::string> files_read() {
  Noted& all = noted();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.files;
}

std::string dependency_rule(const std::string& target, const std::vector<std::string>& files) {
  std::string rule = escaped(target) + ":";
  for (const std::string& f : files) rule += " \\\n  " + escaped(f);
  return rule + "\n";
}

}  // namespace sinter
