// SHA-256 (FIPS 180-4), for the model's hash in banners and cache keys.
#pragma once
#include <string>
#include <string_view>

namespace sinter {
std::string sha256_hex(std::string_view bytes);  // 64 lower-case hex digits
}
