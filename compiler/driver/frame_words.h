// The words that say how a camera's frame or a picture becomes an input: --pre and --image.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/vision/frame.h"

namespace sinter {

struct FrameWords {
  std::string input;  // empty: none is named
  // How the frame lies in memory; --image may leave it out, and takes the picture as the file has it.
  std::optional<PixelFormat> format;
  int64_t width = 0, height = 0, stride = 0;  // stride: bytes from a row to the next
  bool bt709 = false, full = false;           // what luma and chroma mean
  // How its pixels become the model's: (byte * scale - mean) / std.
  FrameFit fit = FrameFit::kStretch;
  ChannelOrder order = ChannelOrder::kRgb;
  bool order_given = false;
  double scale = 1;
  std::vector<double> mean{0}, std{1}, pad{0};  // one for all channels, or one each

  // The bytes of a frame as rows.
  int64_t rows() const { return frame_rows(layout_of(*format), height); }
};

// "NAME: u8 hwc bgr 640x480 stride=1920 resize=letterbox scale=1/255 mean=0.5,0.5,0.5 std=0.25"; NAME: may be
// left out. `option` (--pre, which wants a format and a size, or --image) is for messages. UsageError where a
// word is unknown, comes twice or contradicts another.
FrameWords parse_frame_words(const std::string& option, const std::string& text,
                             const std::vector<std::string>& names);

// All words that aren't the default, without the name, in one order: it can be parsed again.
std::string text(const FrameWords&);

// UsageError where the words speak of another number of channels (1 or 3) than the input has.
void check_channels(const std::string& option, const FrameWords&, int64_t channels, const std::string& input);

// What a frame_to_tensor node does by these words for a picture of `channels` (1 or 3).
FrameRule frame_rule(const FrameWords&, int64_t channels, int64_t to_height, int64_t to_width, DType);

}  // namespace sinter
