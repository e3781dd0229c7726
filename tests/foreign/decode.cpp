// Decodes what other people's serializers wrote, as a route does, with a registry by HTTP.
//   foreign_decode FORMAT URL < lines
// A line is {"payload": base64url, "header": base64url or null}. Answers a line each: the JSON, or
// "! reason: detail". tests/foreign/run.py compares.
#include <iostream>
#include <nlohmann/json.hpp>

#include "key/siv.hpp"
#include "observe/log.hpp"
#include "payload/reader.hpp"

using namespace hapax;

int main(int count, char** arguments) {
  if (count != 3) return 2;
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  const std::string format = arguments[1];
  config::Payload rules;
  rules.format = format == "avro"   ? config::Payload::Format::avro
                 : format == "json" ? config::Payload::Format::json
                                    : config::Payload::Format::protobuf;
  rules.registry.url = arguments[2];
  const payload::Reader reader(rules);
  for (std::string line; std::getline(std::cin, line);) {
    const auto item = nlohmann::json::parse(line);
    const auto bytes = key::bytes_of_base64url(item.at("payload").get<std::string>());
    std::string id;
    std::vector<Header> headers;
    if (item.at("header").is_string()) {
      id = key::bytes_of_base64url(item.at("header").get<std::string>()).value();
      headers.push_back({"__value_schema_id", id});
    }
    Message::Parts parts;
    parts.payload = bytes.value();
    parts.headers = headers;
    const auto reading = reader.read(Message(parts));
    std::string answer =
        reading.is_readable() ? reading.json : "! " + reading.reason + ": " + reading.detail;
    for (char& c : answer)
      if (c == '\n') c = ' ';
    std::cout << answer << std::endl;
  }
  return 0;
}
