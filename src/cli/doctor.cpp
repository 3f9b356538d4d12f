#include "cli/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "config/registry.hpp"
#include "core/settings.hpp"
#include "cpu/gemm.hpp"
#include "gdr/gdr.hpp"

namespace gdr {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::vector<std::string> names(ConfigKind kind) {
  const std::vector<std::string_view> views = config_names(kind);
  return {views.begin(), views.end()};
}

nlohmann::json facts() {
  nlohmann::json json;
  json["version"] = GDRJIT_VERSION;
  json["build"] = {{"type", GDR_BUILD_TYPE}, {"compiler", compiler()}};
  json["cpu"] = {{"threads", settings().num_threads}};
  for (const cpu::GemmSet& set : cpu::gemm_sets()) json["cpu"]["matrix_products"].push_back(set.name);
  for (const BackendInfo& info : backends()) {
    nlohmann::json entry = {{"name", info.backend == Backend::cuda ? "cuda" : "cpu"},
                            {"available", info.unavailable.empty()}};
    if (!info.device.empty()) entry["device"] = info.device;
    if (!info.unavailable.empty()) entry["reason"] = info.unavailable;
    json["backends"].push_back(entry);
  }
  json["configs"] = {
      {"arch", names(ConfigKind::arch)}, {"shape", names(ConfigKind::shape)}, {"budget", names(ConfigKind::budget)}};
  json["settings"] = {{"cache_dir", settings().cache_dir.string()},
                      {"num_threads", settings().num_threads},
                      {"no_color", settings().no_color}};
  return json;
}

void print_table(std::ostream& out, const nlohmann::json& json) {
  const auto line = [&](std::string_view label, const std::string& text) {
    out << fmt::format("{:<10} {}\n", label, text);
  };
  const auto list = [](const nlohmann::json& values) {
    return fmt::format("{}", fmt::join(values.get<std::vector<std::string>>(), ", "));
  };
  line("gdrjit", fmt::format("{}, {} build, {}", json["version"].get<std::string>(),
                             json["build"]["type"].get<std::string>(), json["build"]["compiler"].get<std::string>()));
  line("cpu", fmt::format("{} threads, matrix products for {}", json["cpu"]["threads"].get<int>(),
                          list(json["cpu"]["matrix_products"])));
  for (const nlohmann::json& backend : json["backends"])
    line("backend",
         fmt::format("{}: {}", backend["name"].get<std::string>(),
                     backend["available"].get<bool>() ? "available, " + backend["device"].get<std::string>()
                                                      : "not available: " + backend["reason"].get<std::string>()));
  line("arch", list(json["configs"]["arch"]));
  line("shape", list(json["configs"]["shape"]));
  line("budget", list(json["configs"]["budget"]));
  const std::string cache_dir = json["settings"]["cache_dir"].get<std::string>();
  line("cache", cache_dir.empty() ? "none: GDRJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are unset" : cache_dir);
  line("colours", json["settings"]["no_color"].get<bool>() ? "off (NO_COLOR is set)" : "on a terminal");
}

}  // namespace

void add_doctor_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Say what this build is, what it can do here, and its settings");
  auto format = std::make_shared<std::string>("table");
  command->add_option("--format", *format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([=, &out] {
    const nlohmann::json json = facts();
    if (*format == "json") {
      out << json.dump(2) << '\n';
    } else {
      print_table(out, json);
    }
  });
}

}  // namespace gdr
