#include "cli/doctor.hpp"
#include "cli/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "compile/nvrtc.hpp"
#include "config/registry.hpp"
#include "core/error.hpp"
#include "core/settings.hpp"
#include "cpu/gemm.hpp"
#include "gdr/gdr.hpp"
#include "gpu/backend.hpp"

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

nlohmann::json nvrtc_facts() {
  try {
    const std::shared_ptr<const Nvrtc> nvrtc = Nvrtc::open(nvrtc_search(settings()));
    return {{"available", true}, {"version", nvrtc->version()}, {"path", nvrtc->path()}};
  } catch (const Error& error) {
    return {{"available", false}, {"reason", error.what()}};
  }
}

// Every device that the driver knows, whether it can be used or not.
nlohmann::json device_facts() {
  nlohmann::json list = nlohmann::json::array();
  GpuSession& session = GpuSession::of_process();
  if (!gpu_unavailable(session).empty()) return list;
  const std::shared_ptr<const Driver> driver = session.driver();
  for (int i = 0; i < driver->num_devices(); ++i) {
    const DeviceFacts& device = driver->device(i);
    nlohmann::json entry = {
        {"name", device.name},
        {"compute_capability", fmt::format("{}.{}", device.compute_capability_major, device.compute_capability_minor)},
        {"sms", device.num_sms},
        {"smem_per_block_bytes", device.smem_per_block_optin_bytes},
        {"driver", fmt::format("{}.{}", device.driver_version / 1000, device.driver_version % 1000 / 10)}};
    try {
      entry["arch"] = session.arch_of(i)->name;
    } catch (const Error& error) {
      entry["reason"] = error.what();
    }
    list.push_back(std::move(entry));
  }
  return list;
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
  json["nvrtc"] = nvrtc_facts();
  json["devices"] = device_facts();
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
  const nlohmann::json& nvrtc = json["nvrtc"];
  line("nvrtc", nvrtc["available"].get<bool>()
                    ? fmt::format("{}, {}", nvrtc["version"].get<std::string>(), nvrtc["path"].get<std::string>())
                    : "not available, kernels come from the cache alone: " + nvrtc["reason"].get<std::string>());
  for (const nlohmann::json& device : json["devices"])
    line("device",
         fmt::format("{}: compute capability {}, {} SMs, {} bytes of shared memory a block, driver for CUDA {}; {}",
                     device["name"].get<std::string>(), device["compute_capability"].get<std::string>(),
                     device["sms"].get<int>(), device["smem_per_block_bytes"].get<int>(),
                     device["driver"].get<std::string>(), device.value("arch", device.value("reason", std::string()))));
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
      out << json_output(json);
    } else {
      print_table(out, json);
    }
  });
}

}  // namespace gdr
