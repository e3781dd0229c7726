#include "tools/screen.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hapax::app {
namespace {

constexpr const char* kBold = "\033[1m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kRed = "\033[31m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kClearLine = "\r\033[K";
constexpr std::int64_t kBarWidth = 40;

}  // namespace

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(std::abs(number));
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return number < 0 ? "-" + text : text;
}

std::string money(std::int64_t minor) {
  const std::string cents = std::to_string(std::abs(minor) % 100);
  return (minor < 0 ? "-" : "") + grouped(std::abs(minor) / 100) + "." +
         (cents.size() < 2 ? "0" : "") + cents;
}

DemoScreen::DemoScreen()
    : terminal_(isatty(STDOUT_FILENO) == 1),
      colours_(terminal_ && std::getenv("NO_COLOR") == nullptr) {}

std::string DemoScreen::coloured(const char* colour, const std::string& text) const {
  return colours_ ? colour + text + "\033[0m" : text;
}

std::string DemoScreen::seconds() const {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
  char text[32];
  std::snprintf(text, sizeof text, "%5.1f s  ", passed.count());
  return text;
}

void DemoScreen::end_progress() {
  if (bar_shown_) std::fputs(kClearLine, stdout);
  bar_shown_ = false;
}

void DemoScreen::step(const char* colour, const std::string& text) {
  end_progress();
  std::printf("%s%s\n", coloured(kDim, seconds()).c_str(), coloured(colour, text).c_str());
  std::fflush(stdout);
}

void DemoScreen::title(const std::string& text) {
  std::printf("%s\n\n", coloured(kBold, text).c_str());
  std::fflush(stdout);
}

void DemoScreen::line(const std::string& text) { step("", text); }

void DemoScreen::alarm(const std::string& text) { step(kRed, text); }

void DemoScreen::detail(const std::string& text) {
  end_progress();
  std::printf("           %s\n", text.c_str());
  std::fflush(stdout);
}

void DemoScreen::progress(const std::string& what, std::int64_t done, std::int64_t all) {
  const std::string numbers = grouped(done) + " of " + grouped(all) + " " + what;
  if (terminal_) {
    const std::int64_t filled = std::clamp<std::int64_t>(kBarWidth * done / all, 0, kBarWidth);
    std::printf("%s%s[%s%s] %s", kClearLine, coloured(kDim, seconds()).c_str(),
                coloured(kGreen, std::string(static_cast<std::size_t>(filled), '#')).c_str(),
                std::string(static_cast<std::size_t>(kBarWidth - filled), '.').c_str(),
                numbers.c_str());
    bar_shown_ = true;
  } else if (4 * done / all > quarter_) {
    quarter_ = 4 * done / all;
    std::printf("%s%s\n", seconds().c_str(), numbers.c_str());
  }
  std::fflush(stdout);
}

bool DemoScreen::fact(bool holds, const std::string& claim, const std::string& numbers) {
  end_progress();
  const std::string mark = holds ? coloured(kGreen, "yes") : coloured(kRed, "NO ");
  std::printf("  %s  %-40s %s\n", mark.c_str(), claim.c_str(), numbers.c_str());
  return holds;
}

void DemoScreen::verdict(bool exact) {
  const std::string text = exact ? coloured(kGreen, "Exactly once: the ledger is exact.")
                                 : coloured(kRed, "NOT exact. This is a bug in hapax.");
  std::printf("\n%s%s\n", coloured(kDim, seconds()).c_str(), text.c_str());
  std::fflush(stdout);
}

}  // namespace hapax::app
