#include "dataset/lettering.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace netmend::dataset {
namespace {

struct Point {
  double x = 0, y = 0;
};
using Line = std::vector<Point>;

constexpr double kThick = 0.62;  ///< half of a stroke's width
constexpr int64_t kSpace = 4, kBetween = 3;

/// Strokes of a letter, apart by spaces: points as x and y (one hexadecimal digit each), capitals from y = 0 to 9,
/// small letters from 3, descenders to 12. `~` is a smooth curve between its ends, `@` a closed one.
const std::map<char32_t, std::string_view>& strokes() {
  static const std::map<char32_t, std::string_view> all = {
      {U'a', "@03434909 4349"},
      {U'b', "0009 @03434909"},
      {U'c', "~444303094948"},
      {U'd', "4049 @03434909"},
      {U'e', "0646 ~464303094948"},
      {U'f', "~40202224 2429 0343"},
      {U'g', "@03434909 434a ~4a4c0c0b"},
      {U'h', "0009 ~05034345 4549"},
      {U'i', "0309 0001"},
      {U'j', "131a ~1a1c0c 1011"},
      {U'k', "0009 4307 1649"},
      {U'l', "0009"},
      {U'm', "0309 ~05033335 3539 ~35336365 6569"},
      {U'n', "0309 ~05034345 4549"},
      {U'o', "@03434909"},
      {U'p', "030c @03434909"},
      {U'q', "434c @03434909"},
      {U'r', "0309 ~050333"},
      {U's', "~4443030646490908"},
      {U't', "1117 ~171939 0333"},
      {U'u', "0307 ~07094947 4349"},
      {U'v', "032943"},
      {U'w', "0329344963"},
      {U'x', "0349 4309"},
      {U'y', "0329 431c"},
      {U'z', "03430949"},
      {U'A', "093069 1656"},
      {U'B', "0009 0030 ~30505434 0434 ~34646939 0939"},
      {U'C', "~626000096967"},
      {U'D', "0009 0020 ~20606929 0929"},
      {U'E', "50000959 0444"},
      {U'F', "500009 0444"},
      {U'G', "~626000096965 6535"},
      {U'H', "0009 5059 0454"},
      {U'I', "1019 0020 0929"},
      {U'J', "4047 ~47490907"},
      {U'K', "0009 5005 2359"},
      {U'L', "000949"},
      {U'M', "0900356069"},
      {U'N', "09005950"},
      {U'O', "@00606909"},
      {U'P', "0009 0030 ~30505535 0535"},
      {U'Q', "@00606909 476a"},
      {U'R', "0009 0030 ~30505535 0535 3559"},
      {U'S', "~5250000454590907"},
      {U'T', "0060 3039"},
      {U'U', "0006 ~06096966 6066"},
      {U'V', "003960"},
      {U'W', "0029416980"},
      {U'X', "0059 5009"},
      {U'Y', "0034 6034 3439"},
      {U'Z', "00500959"},
      {U'0', "@00505909"},
      {U'1', "022029"},
      {U'2', "~0200505309 0959"},
      {U'3', "~0100505424 ~2454590908"},
      {U'4', "400656 4049"},
      {U'5', "500004 ~0454590908"},
      {U'6', "@04545909 ~400006"},
      {U'7', "005029"},
      {U'8', "@00505404 @04545909"},
      {U'9', "@00505505 ~535919"},
      {U'-', "0636"},
      {U'.', "0809"},
      {U',', "180b"},
      {U'/', "500a"},
      {U'\\', "005a"},
      {U'(', "~2002082a"},
      {U')', "~0022280a"},
      {U'[', "20000a2a"},
      {U']', "00202a0a"},
      {U'{', "~302014051629 293a"},
      {U'}', "~001014251619 190a"},
      {U':', "0405 0809"},
      {U';', "1415 180b"},
      {U'=', "0444 0747"},
      {U'<', "430649"},
      {U'>', "034609"},
      {U'_', "0a5a"},
      {U'+', "0646 2428"},
      {U'?', "~010040442426 2829"},
      {U'!', "0006 0809"},
      {U'&', "~590300404305093955"},
      {U'%', "@00202303 @36565939 5009"},
      {U'\'', "0002"},
      {U'"', "0002 2022"},
      {U'*', "2024 0143 4103"},
      {U'#', "2019 4039 0353 0656"},
      {U'@', "@33535636 ~5366868000099999"},
      {U'$', "~4240000545490907 202a"},
      {U'|', "000a"},
      {U'^', "022042"},
      {U'`', "0012"},
      {U'~', "0516 3645"},
      {U'ß', "0902 ~0200404324 ~24545929"},
      {U'×', "0448 4408"},
      {U'–', "0656"},
      {U'…', "0809 2829 4849"},
      {U'→', "0666 446648"},
      {U'≥', "034609 0b4b"},
      {U'≤', "430649 0b4b"},
  };
  return all;
}

struct Accented {
  std::u32string_view letters, without;
  std::string_view mark;
};
constexpr Accented kAccents[] = {
    {U"áéíóúýÁÉÍÓÚÝ", U"aeiouyAEIOUY", "1230"},
    {U"àèìòùÀÈÌÒÙ", U"aeiouAEIOU", "1032"},
    {U"âêîôûÂÊÎÔÛ", U"aeiouAEIOU", "022042"},
    {U"ãñõÃÑÕ", U"anoANO", "02113241"},
    {U"äëïöüÿÄËÏÖÜ", U"aeiouyAEIOU", "0001 3031"},
    {U"åÅ", U"aA", "@10303212"},
    {U"çÇ", U"cC", "2a1b"},
    {U"øØ", U"oO", "0949"},
};

/// The next character; broken bytes are boxes.
char32_t next(std::string_view& text) {
  const auto first = uint8_t(text[0]);
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 1;
  if (length > text.size() || (length == 1 && first >= 0x80)) return text.remove_prefix(1), U'\xfffd';
  char32_t letter = length == 1 ? first : first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) letter = letter << 6 | (uint8_t(text[i]) & 0x3f);
  text.remove_prefix(length);
  return letter;
}

/// Corners are cut until the line is smooth.
Line smooth(Line line, bool closed) {
  for (int round = 0; round < 4; ++round) {
    Line finer;
    if (!closed) finer.push_back(line.front());
    for (size_t i = 0; i + (closed ? 0 : 1) < line.size(); ++i) {
      const Point a = line[i], b = line[(i + 1) % line.size()];
      finer.push_back({0.75 * a.x + 0.25 * b.x, 0.75 * a.y + 0.25 * b.y});
      finer.push_back({0.25 * a.x + 0.75 * b.x, 0.25 * a.y + 0.75 * b.y});
    }
    if (!closed) finer.push_back(line.back());
    line = std::move(finer);
  }
  if (closed) line.push_back(line.front());
  return line;
}

void add_strokes(std::vector<Line>& lines, std::string_view words, double up = 0) {
  auto digit = [](char c) { return c <= '9' ? double(c - '0') : double(c - 'a' + 10); };
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    const char kind = word[0];
    if (kind == '~' || kind == '@') word.remove_prefix(1);
    Line line;
    for (size_t i = 0; i + 1 < word.size(); i += 2) line.push_back({digit(word[i]), digit(word[i + 1]) - up});
    lines.push_back(kind == '~' || kind == '@' ? smooth(std::move(line), kind == '@') : std::move(line));
  }
}

/// The lines of a letter; an empty box for what is not known.
std::vector<Line> lines_of(char32_t letter) {
  std::vector<Line> lines;
  for (const Accented& accent : kAccents)
    if (const size_t at = accent.letters.find(letter); at != std::u32string_view::npos) {
      const char32_t plain = accent.without[at];
      const bool small = plain >= U'a' && plain <= U'z', below = accent.mark == "2a1b", through = accent.mark == "0949";
      if (through)
        add_strokes(lines, small ? "0943" : "0960");
      else
        add_strokes(lines, accent.mark, small || below ? 0 : 3);
      add_strokes(lines, plain == U'i' ? "2329" : strokes().at(plain));  // its dot gives way
      return lines;
    }
  const auto hit = strokes().find(letter);
  add_strokes(lines, hit == strokes().end() ? "0050590900" : hit->second);
  return lines;
}

int64_t width_of(const std::vector<Line>& lines) {
  double most = 0;
  for (const Line& line : lines)
    for (const Point& point : line) most = std::max(most, point.x);
  return int64_t(std::ceil(most));
}

/// How far a place is from the nearest stroke.
double distance(const std::vector<Line>& lines, double x, double y) {
  double least = 1e9;
  for (const Line& line : lines)
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      const Point a = line[i], b = line[i + 1];
      const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
      const double along = length > 0 ? std::clamp(((x - a.x) * dx + (y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
      least = std::min(least, std::hypot(x - a.x - along * dx, y - a.y - along * dy));
    }
  return least;
}

}  // namespace

int64_t text_width(std::string_view text) {
  int64_t width = 0;
  while (!text.empty()) {
    const char32_t letter = next(text);
    width += letter == U' ' ? kSpace : width_of(lines_of(letter)) + kBetween;
  }
  return width;
}

void draw_text(Image& image, int64_t top, int64_t left, std::string_view text, uint8_t grey) {
  while (!text.empty()) {
    const char32_t letter = next(text);
    if (letter == U' ') {
      left += kSpace;
      continue;
    }
    const std::vector<Line> lines = lines_of(letter);
    const int64_t width = width_of(lines);
    for (int64_t y = -4; y <= kLetterHeight; ++y)
      for (int64_t x = -1; x <= width + 1; ++x) {
        const int64_t row = top + y, column = left + x;
        if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
        const double covered = std::clamp(kThick + 0.5 - distance(lines, double(x), double(y)), 0.0, 1.0);
        for (int64_t channel = 0; channel < image.channels && covered > 0; ++channel) {
          uint8_t& pixel = image.pixels[size_t((row * image.width + column) * image.channels + channel)];
          pixel = uint8_t(std::lround((1 - covered) * double(pixel) + covered * double(grey)));
        }
      }
    left += width + kBetween;
  }
}

}  // namespace netmend::dataset
