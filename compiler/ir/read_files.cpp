#include "ir/read_files.h"

#include <algorithm>

namespace sinter {
namespace {

thread_local ReadLog* current = nullptr;

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

ReadLog::ReadLog() : before_(current) { current = this; }
ReadLog::~ReadLog() { current = before_; }

void note_read(const std::filesystem::path& file) {
  if (!current) return;
  std::error_code ec;
  const std::string path = std::filesystem::absolute(file, ec).lexically_normal().string();
  std::vector<std::string>& files = current->files_;
  if (!ec && std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
}

std::string dependency_rule(const std::string& target, const std::vector<std::string>& files) {
  std::string rule = escaped(target) + ":";
  for (const std::string& f : files) rule += " \\\n  " + escaped(f);
  return rule + "\n";
}

}  // namespace sinter
