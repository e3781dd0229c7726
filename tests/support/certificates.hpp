// A public key infrastructure for the tests. Its authority signs certificates for servers and
// clients, also expired ones.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace hapax::support {

enum class Valid { now, expired };
enum class KeyType { ecdsa, rsa };

// Files in PEM. Private keys are readable by the owner only.
struct Certificate {
  std::filesystem::path certificate;
  std::filesystem::path key;     // PKCS #8
  std::filesystem::path bundle;  // key and certificate in one file, as Kafka wants them
};

// Throws: std::runtime_error. Thread safety: none.
class Authority {
 public:
  // `folder`: is there, and keeps the files.
  Authority(std::filesystem::path folder, const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // Its own certificate: what a client trusts.
  std::filesystem::path certificate() const { return folder_ / (name_ + ".pem"); }

  // `name`: of the files, and the common name if `host` is empty. `host`: a DNS name in the
  // certificate, for a server. `password`: encrypts the key, if it is not empty.
  Certificate issue(const std::string& name, const std::string& host = {}, Valid valid = Valid::now,
                    const std::string& password = {}, KeyType type = KeyType::ecdsa);

 private:
  struct Pair;
  std::filesystem::path folder_;
  std::string name_;
  std::unique_ptr<Pair> pair_;
  long serial_ = 1;
};

}  // namespace hapax::support
