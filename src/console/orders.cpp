#include "console/orders.hpp"

#include <algorithm>

#include "cli/call_orders.hpp"
#include "cli/command.hpp"
#include "cli/letter_orders.hpp"
#include "cli/operator.hpp"
#include "cli/resumption.hpp"
#include "cli/store_access.hpp"
#include "console/mask.hpp"
#include "console/query.hpp"
#include "inspect/letters.hpp"
#include "inspect/outbox_state.hpp"

namespace hapax::console {
namespace {

using app::Json;
using app::Stop;
using observe::PageRequest;

const std::string& group_named(Ground& ground) { return app::group_of(ground.sessions.config()); }

// A change as a command makes it: with its sentence if PostgreSQL refuses.
Json changed(Ground& ground, const char* rights,
             const std::function<Json(store::Session&)>& action) {
  Json result;
  ground.sessions.change([&](store::Session& session) {
    app::change(rights, [&] {
      result = action(session);
      return app::kDone;
    });
  });
  return result;
}

store::Order order_of(Ground& ground, const Json& body) {
  return {group_named(ground), need_line(body, "who"), need_line(body, "why")};
}

store::OpenLetters letters_of(Ground& ground, const Json& body) {
  store::OpenLetters letters;
  letters.group = group_named(ground);
  letters.ids = need_ids(body, "ids");
  if (letters.ids.empty()) throw Stop(app::kUsage, "the order names no letter");
  if (letters.ids.size() > kMaxMatching)
    throw Stop(app::kUsage, "the order names more than " + std::to_string(kMaxMatching) +
                                " letters; give a narrower filter, or use the command");
  return letters;
}

// What the dry run showed: an order ends these halts, or none.
std::vector<store::SeenHalt> seen_halts(const Json& body) {
  const auto seen = body.find("seen");
  if (seen == body.end() || !seen->is_array()) throw Stop(app::kUsage, "seen is no list");
  std::vector<store::SeenHalt> halts;
  for (const Json& halt : *seen) {
    if (!halt.is_object()) throw Stop(app::kUsage, "seen holds what is no halt");
    halts.push_back(
        {need_ids({{"id", {halt.value("id", Json())}}}, "id")[0], need_text(halt, "reason")});
  }
  return halts;
}

store::OutboxOrder outbox_order(Ground& ground, const Json& body) {
  store::OutboxOrder order{group_named(ground), need_line(body, "who"), need_line(body, "why"),
                           is_dry_run(body)};
  if (!order.dry_run) order.seen = seen_halts(body);
  return order;
}

Json shown_halts(const store::OutboxDecided& decided) {
  Json shown = Json::array();
  for (const Json& halt : decided.halts)
    shown.push_back({{"id", halt.at("id")},
                     {"topic", halt.at("topic")},
                     {"record", halt.at("record")},
                     {"reason", halt.at("reason")},
                     {"detail", halt.at("detail")}});
  return shown;
}

Json tally_json(const store::OpenLetters& letters, const char* name, const app::LetterTally& tally,
                const std::vector<std::string>& lines) {
  return {{"named", letters.ids.size()},
          {name, tally.changed},
          {"lines", lines},
          {"running", tally.running},
          {"ended", tally.ended}};
}

// Who does not see a payload cannot edit it: values would be lost.
void expect_unmasked(Ground& ground, store::Session& session, std::int64_t id) {
  const Json letter = app::read_letter(session, group_named(ground), std::to_string(id));
  if (masked(ground.sessions.config().console.mask, app::bytes_of_hex(letter.at("payload"))).hides)
    throw Stop(app::kFailed,
               "console.mask of the configuration hides a part of this payload, so the console "
               "does not replace it; use hapax dead replay --payload");
}

// `told` without what console.mask hides of the answer that is kept in it.
std::string without_answer(Ground& ground, std::string told, const Json& kept) {
  const auto& mask = ground.sessions.config().console.mask;
  if (!kept.is_string()) return told;
  Json shown = {{"answer", kept}};
  mask_member(mask, shown, "answer");
  const auto& whole = kept.get_ref<const std::string&>();
  if (const auto at = told.find(whole); at != std::string::npos)
    told.replace(at, whole.size(), shown.at("answer").get<std::string>());
  return told;
}

}  // namespace

Json resume(Ground& ground, const PageRequest& request) {
  const Json body = body_of(request);
  const std::string where = need_text(body, "place"), name = need_text(body, "decision");
  const auto place = app::parse_place(where);
  const store::Decision* const decision = store::decision_named(name);
  if (!place) throw Stop(app::kUsage, "\"" + where + "\" is no place");
  if (decision == nullptr) throw Stop(app::kUsage, "there is no decision `" + name + "`");
  store::Resumption wanted = app::resumption_of(ground.sessions.config(), *place);
  wanted.decision = name;
  wanted.who = need_line(body, "who");
  wanted.why = need_line(body, "why");
  const bool dry_run = is_dry_run(body);
  if (!dry_run) wanted.seen = need_ids(body, "seen");
  return changed(ground, app::rights_for(*decision), [&](store::Session& session) {
    const store::Resumed resumed =
        dry_run ? app::rehearse(session, wanted, where) : store::resume(session, wanted);
    if (resumed.halts.empty())
      throw Stop(app::kFailed, "another operator has ended the halt meanwhile");
    Json halts = Json::array();
    for (const store::Halt& halt : resumed.halts) halts.push_back(halt.id);
    return Json{{"halts", halts},
                {"lines", app::resumed_lines(resumed)},
                {"effect", app::about(*decision, resumed.halts).effect},
                {"dry_run", dry_run}};
  });
}

Json matching(Ground& ground, const PageRequest& request) {
  const store::DeadLetterFilter filter = app::list_filter(filter_of(request), group_named(ground));
  store::LetterIds ids;
  std::size_t skipped = 0;  // by an operator's decision; left out
  ground.sessions.read([&](store::Session& session) {
    store::OpenLetters letters = app::letters_to_order(session, filter);
    const bool takes_skipped = letters.takes_skipped();
    letters.skipped = true;
    ids.clear();
    skipped = 0;
    for (Json page; !(page = store::page_of(session, letters)).empty();) {
      letters.above = page.back().at("id").get<std::int64_t>();
      for (const Json& row : page) {
        if (!takes_skipped && row.at("reason") == store::kSkippedByOperator)
          ++skipped;
        else
          ids.push_back(row.at("id").get<std::int64_t>());
      }
      if (ids.size() > kMaxMatching)
        throw Stop(app::kFailed, "more than " + std::to_string(kMaxMatching) +
                                     " letters match; give a narrower filter, or use the command");
    }
  });
  return {{"ids", ids}, {"skipped", skipped}};
}

Json replay(Ground& ground, const PageRequest& request) {
  const Json body = body_of(request);
  const store::Order order = order_of(ground, body);
  const store::OpenLetters letters = letters_of(ground, body);
  std::optional<store::Replacement> payload;
  if (body.contains("payload") && !body.at("payload").is_null())
    payload = store::Replacement{text_in(body, "payload")};
  if (payload && letters.ids.size() != 1)
    throw Stop(app::kUsage, "an edited payload is for exactly one letter");
  return changed(ground, app::operator_rights(), [&](store::Session& session) {
    if (payload) expect_unmasked(ground, session, letters.ids[0]);
    const app::ReplayTally tally = app::want_all(session, order, letters, payload);
    if (payload && !tally.wanted_before.empty())
      throw Stop(app::kFailed, "a replay is wanted already by " +
                                   app::cell(tally.wanted_before[0].at("who")) +
                                   ", and yours was not added; cancel that one first");
    return Json{{"named", letters.ids.size()},
                {"wanted", tally.added},
                {"wanted_before", tally.wanted_before.size()},
                {"without_bytes", tally.without_bytes.size()},
                {"ended", tally.ended}};
  });
}

Json cancel(Ground& ground, const PageRequest& request) {
  const Json body = body_of(request);
  const store::Order order = order_of(ground, body);
  const store::OpenLetters letters = letters_of(ground, body);
  return changed(ground, app::operator_rights(), [&](store::Session& session) {
    const app::LetterTally tally = app::cancel_all(session, order, letters);
    return tally_json(letters, "cancelled", tally, app::cancel_lines(tally.calls, true));
  });
}

Json discard(Ground& ground, const PageRequest& request) {
  const Json body = body_of(request);
  const store::Order order = order_of(ground, body);
  const store::OpenLetters letters = letters_of(ground, body);
  return changed(ground, app::operator_rights(), [&](store::Session& session) {
    const app::LetterTally tally = app::discard_all(session, order, letters);
    return tally_json(letters, "discarded", tally,
                      app::discard_lines(tally.calls, letters.ids.size() == 1));
  });
}

Json outbox_retry(Ground& ground, const PageRequest& request) {
  const Json body = body_of(request);
  const store::OutboxOrder order = outbox_order(ground, body);
  const std::string which = need_text(body, "which");
  return changed(ground, app::operator_rights(), [&](store::Session& session) {
    const store::OutboxDecided decided = store::retry_outbox(session, order, which);
    if (decided.halts.empty())
      throw Stop(app::kFailed, app::not_halted(session, order.group, which));
    return Json{{"halts", shown_halts(decided)}, {"dry_run", order.dry_run}};
  });
}

Json outbox_skip(Ground& ground, const PageRequest& request) {
  const Json body = body_of(request);
  const store::OutboxOrder order = outbox_order(ground, body);
  const store::LetterIds ids = need_ids(body, "ids");
  if (ids.empty()) throw Stop(app::kUsage, "the order names no record");
  return changed(ground, app::operator_rights(), [&](store::Session& session) {
    const store::OutboxDecided decided = store::skip_outbox(session, order, ids);
    return Json{{"halts", shown_halts(decided)},
                {"records", decided.records.size()},
                {"dry_run", order.dry_run}};
  });
}

Json decide(Ground& ground, const PageRequest& request) {
  using What = store::CallDecision::What;
  const Json body = body_of(request);
  const config::Config& config = ground.sessions.config();
  const std::string scope = app::call_scope(config, text_in(body, "scope"));
  const std::string name = need_text(body, "decision");
  if (name != "happened" && name != "did_not_happen" && name != "give_up")
    throw Stop(app::kUsage, "there is no decision `" + name + "`");
  store::CallDecision decision =
      app::call_decision(config, scope,
                         name == "happened"         ? What::happened
                         : name == "did_not_happen" ? What::did_not_happen
                                                    : What::give_up);
  // An emptied field must not book the answer that is kept.
  if (body.contains("answer")) decision.answer = app::json_answer(text_in(body, "answer"));
  decision.who = need_line(body, "who");
  decision.why = need_line(body, "why");
  decision.dry_run = is_dry_run(body);
  // A call that was made again since it was shown is another one.
  if (body.contains("token"))
    decision.token = need_ids({{"token", {body.at("token")}}}, "token")[0];
  if (!decision.dry_run && !decision.token) throw Stop(app::kUsage, "token is missing");
  const store::KeyName named{need_text(body, "key"), scope, text_in(body, "tenant")};
  return changed(ground, app::operator_rights(), [&](store::Session& session) {
    const store::KeyName key = app::call_key(session, named);
    const Json found = store::decide_call(session, key, decision);
    const bool books = decision.what == What::happened;
    Json told = {
        {"answer", !books            ? Json()
                   : decision.answer ? Json(*decision.answer)
                                     : found.at("answer")},
        {"effect",
         without_answer(
             ground, app::call_effect(decision, found, app::calling_scopes(config).contains(scope)),
             found.at("answer"))},
        {"status", found.at("status")},
        {"token", found.at("token")},
        {"dry_run", decision.dry_run}};
    mask_member(ground.sessions.config().console.mask, told, "answer");
    return told;
  });
}

}  // namespace hapax::console
