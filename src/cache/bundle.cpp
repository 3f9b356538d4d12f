#include "cache/bundle.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <tuple>

#include "cache/bytes.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"

namespace gdr {
namespace {

constexpr std::string_view kMagicBytes{"\x89GDRbnd\n", 8};

constexpr const EntryField& kMagic = kBundleFields[0];
constexpr const EntryField& kVersion = kBundleFields[1];
constexpr const EntryField& kChecksum = kBundleFields[2];
constexpr const EntryField& kIndexOffset = kBundleFields[3];
constexpr const EntryField& kEntryCount = kBundleFields[4];
constexpr std::size_t kCheckedFrom = kChecksum.offset + kChecksum.bytes;
static_assert(std::size(kBundleFields) == 5 && fields_fill(kBundleFields, kBundleHeaderBytes));

constexpr const EntryField& kRecordKey = kBundleRecordFields[0];
constexpr const EntryField& kRecordKind = kBundleRecordFields[1];
constexpr const EntryField& kRecordOffset = kBundleRecordFields[2];
constexpr const EntryField& kRecordBytes = kBundleRecordFields[3];
static_assert(std::size(kBundleRecordFields) == 4 && fields_fill(kBundleRecordFields, kBundleRecordBytes));

auto order_of(const BundleRecord& record) { return std::tie(record.kind, record.key); }

std::string record_bytes(const BundleRecord& record) {
  std::string bytes = record.key + record.kind;
  bytes.resize(kRecordOffset.offset, '\0');
  return bytes + number_bytes(record.offset) + number_bytes(record.bytes);
}

// The records of an index whose checksum is right. Nothing if they do not hold together all the same.
std::optional<std::vector<BundleRecord>> parse_index(std::string_view index, std::uint64_t index_offset) {
  std::vector<BundleRecord> records;
  for (; !index.empty(); index.remove_prefix(kBundleRecordBytes)) {
    const std::string_view kind = text_at(index, kRecordKind);
    BundleRecord record{std::string(kind.substr(0, kind.find('\0'))), std::string(text_at(index, kRecordKey)),
                        number_at(index, kRecordOffset.offset), number_at(index, kRecordBytes.offset)};
    if (!is_kind(record.kind) || !is_key(record.key)) return std::nullopt;
    if (record.offset < kBundleHeaderBytes || record.offset > index_offset ||
        record.bytes > index_offset - record.offset || record.offset % kPayloadAlignment != 0)
      return std::nullopt;
    if (!records.empty() && order_of(records.back()) >= order_of(record)) return std::nullopt;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

Bundle::Bundle(const std::filesystem::path& path)
    : path_(path), fd_(open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK)) {
  const auto bad = [&](const std::string& what) { return BadBundle(path.string() + ": " + what); };
  if (!fd_) throw IoError("open bundle", path, errno);
  const struct ::stat status = status_of(fd_, path);
  if (!S_ISREG(status.st_mode)) throw bad("it is not a regular file");
  if (const std::string reason = why_distrusted(status, ::geteuid()); !reason.empty())
    throw Distrusted(path.string() + " " + reason);

  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  const std::string header = read_at(fd_, 0, kBundleHeaderBytes, path);
  if (header.size() < kBundleHeaderBytes || text_at(header, kMagic) != kMagicBytes)
    throw bad("it does not begin like a bundle");
  if (const std::uint64_t version = number_at(header, kVersion.offset); version != kBundleVersion)
    throw bad(fmt::format("its format has version {}, this gdrjit reads {}", version, kBundleVersion));
  const std::uint64_t index_offset = number_at(header, kIndexOffset.offset);
  const std::uint64_t count = number_at(header, kEntryCount.offset);
  if (index_offset < kBundleHeaderBytes || index_offset > file_bytes ||
      count != (file_bytes - index_offset) / kBundleRecordBytes ||
      (file_bytes - index_offset) % kBundleRecordBytes != 0)
    throw bad(fmt::format("it has {} bytes, which does not agree with its header", file_bytes));
  const std::string index = read_at(fd_, index_offset, file_bytes - index_offset, path);
  if (index.size() != file_bytes - index_offset ||
      hash_hex(header.substr(kCheckedFrom) + index) != text_at(header, kChecksum))
    throw bad("its index does not have the checksum that its header states");
  std::optional<std::vector<BundleRecord>> records = parse_index(index, index_offset);
  if (!records) throw bad("its index does not hold together");
  records_ = std::move(*records);
}

LoadedEntry Bundle::find(std::string_view kind, std::string_view key) const {
  using Name = std::tuple<std::string_view, std::string_view>;
  const auto found =
      std::lower_bound(records_.begin(), records_.end(), Name(kind, key),
                       [](const BundleRecord& record, const Name& asked) { return Name(order_of(record)) < asked; });
  if (found == records_.end() || found->kind != kind || found->key != key) return {};
  return load(*found);
}

LoadedEntry Bundle::load(const BundleRecord& record) const {
  LoadedEntry result;
  std::optional<Entry> entry =
      Entry::parse(read_at(fd_, record.offset, record.bytes, path_), record.kind, record.key, result.bad);
  if (entry) result.entry = std::make_shared<const Entry>(std::move(*entry));
  return result;
}

std::uint64_t write_bundle(const std::filesystem::path& path,
                           const std::function<std::shared_ptr<const Entry>()>& next) {
  std::vector<BundleRecord> records;
  replace_file(path, [&](const Fd& fd) {
    std::uint64_t offset = kBundleHeaderBytes;
    write_all(fd, std::string(kBundleHeaderBytes, '\0'), path);  // in its place until the index is known
    while (const std::shared_ptr<const Entry> entry = next()) {
      const std::string& image = entry->image();
      const std::uint64_t padding = (kPayloadAlignment - image.size() % kPayloadAlignment) % kPayloadAlignment;
      write_all(fd, image, path);
      write_all(fd, std::string(padding, '\0'), path);
      records.push_back({entry->kind(), entry->key(), offset, image.size()});
      offset += image.size() + padding;
    }
    std::sort(records.begin(), records.end(),
              [](const BundleRecord& a, const BundleRecord& b) { return order_of(a) < order_of(b); });
    std::string index;
    for (std::size_t i = 0; i < records.size(); ++i) {
      internal_check(i == 0 || order_of(records[i - 1]) < order_of(records[i]), "cache: an entry twice in a bundle");
      index += record_bytes(records[i]);
    }
    write_all(fd, index, path);
    const std::string rest = number_bytes(offset) + number_bytes(records.size());
    const std::string header = std::string(kMagicBytes) + number_bytes(kBundleVersion) + hash_hex(rest + index) + rest;
    if (::lseek(fd.get(), 0, SEEK_SET) != 0) throw IoError("write", path, errno);
    write_all(fd, header, path);
  });
  return records.size();
}

}  // namespace gdr
