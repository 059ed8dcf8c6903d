#include "emit/class_names.h"

#include "ir/error.h"

namespace sinter {

std::string c_string(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (u == 0) break;  // C strings end there
    if (u >= 0x20 && u < 0x7f && c != '"' && c != '\\' && c != '?')
      out += c;
    else
      out += fmt::format("\\{:03o}", u);
  }
  return out + "\"";
}

void declare_class_names(Printer& p, const std::vector<Member>& outputs, const BundleOptions& o) {
  for (const Member& m : outputs) {
    const auto found = o.class_names.find(m.model_name);
    if (found == o.class_names.end() || found->second.empty()) continue;
    p.comment(fmt::format("What the numbers of {} stand for, or its columns.", sinter::quoted(m.model_name)));
    p.line("static const char* const {}_{}_names[] = {{", o.name, m.name);
    for (const std::string& n : found->second) p.line("{},", c_string(n));
    p.line("}};");
    p.blank();
  }
}

}  // namespace sinter
