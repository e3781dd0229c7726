// Handlers drawn at random from a grammar of SQL and exceptions: what the worst of them would do
// behind an effect of its own.
#pragma once

#include <pqxx/pqxx>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hapax/context.hpp"
#include "hapax/message.hpp"

namespace hapax::flow::grammar {

using Random = std::mt19937_64;

inline std::size_t draw(Random& random, std::size_t below) { return random() % below; }

// One step of a handler.
struct Step {
  enum class Through { sql, write, pqxx, subtransaction };
  std::string text;  // SQL, or what libpqxx shall do: "<commit>", "<abort>"
  Through through = Through::sql;
  bool swallows = false;
};

enum class End { returns, throws, rejects, retries, nests, throws_sql_error, throws_a_number };

struct Program {
  std::vector<Step> steps;
  End end = End::returns;

  std::string describe() const {
    static constexpr const char* kThrough[] = {"sql", "write", "pqxx", "subtransaction"};
    std::string text;
    for (const Step& step : steps)
      text += std::string("\n  ") + kThrough[static_cast<int>(step.through)] +
              (step.swallows ? " (swallows) " : " ") + step.text;
    return text + "\n  ends as " + std::to_string(static_cast<int>(end));
  }
};

// Sequences that belong together, and statements that may stand anywhere. `$K` is the message's
// key, `$R` the number of the run.
inline const std::vector<std::vector<const char*>>& phrases() {
  static const std::vector<std::vector<const char*>> all = {
      {"COMMIT"},
      {"ROLLBACK"},
      {"END"},
      {"ABORT"},
      {"COMMIT AND CHAIN"},
      {"ROLLBACK AND CHAIN"},
      {"BEGIN READ WRITE"},
      {"BEGIN"},
      {"PREPARE TRANSACTION 'hostile'"},
      {"<commit>"},
      {"<abort>"},
      {"ROLLBACK", "BEGIN READ WRITE", "INSERT INTO public.strays VALUES ('$K', $R)", "COMMIT"},
      {"ROLLBACK", "BEGIN READ WRITE", "INSERT INTO public.strays VALUES ('$K', $R)", "COMMIT",
       "BEGIN"},
      {"ROLLBACK", "BEGIN READ WRITE", "INSERT INTO public.strays VALUES ('$K', $R)", "COMMIT",
       "BEGIN", "SELECT 1 / 0"},
      {"ROLLBACK", "BEGIN READ WRITE", "INSERT INTO public.strays VALUES ('$K', $R)",
       "COMMIT AND CHAIN", "SELECT no_such_column"},
      {"ROLLBACK", "SET default_transaction_read_only TO off",
       "INSERT INTO public.strays VALUES ('$K', $R)"},
      {"INSERT INTO public.strays VALUES ('$K', $R)"},
      {"SAVEPOINT a", "SELECT 1 / 0", "ROLLBACK TO a"},
      {"SAVEPOINT a", "RELEASE a"},
      {"SAVEPOINT a", "INSERT INTO public.strays VALUES ('$K', $R)", "ROLLBACK TO a"},
      {"SELECT 1 / 0"},
      {"SELECT no_such_column"},
      {"SELECT $1::int"},
      {"SELECT tools.raise('40001')"},
      {"SELECT tools.raise('40P01')"},
      {"SELECT tools.raise('25P02')"},
      {"SELECT tools.raise('BK001')"},
      {"INSERT INTO late VALUES (1)"},
      {"EXECUTE nonexistent"},
      {"PREPARE mine AS SELECT 1"},
      {"DEALLOCATE ALL"},
      {"DISCARD ALL"},
      {"DISCARD TEMP"},
      {"LISTEN hostile"},
      {"SELECT pg_advisory_lock(7)"},
      {"DECLARE c CURSOR WITH HOLD FOR SELECT 1"},
      {"SET search_path TO elsewhere"},
      {"SET LOCAL search_path TO elsewhere"},
      {"SELECT set_config('search_path', 'elsewhere', false)"},
      {"SELECT pg_catalog . \"set_config\" ('search_path', 'elsewhere', false)"},
      {"SELECT tools.aside()"},
      {"SET ROLE clerk"},
      {"SET LOCAL ROLE clerk"},
      {"SET lock_timeout TO 1"},
      {"SET client_encoding TO 'LATIN1'"},
      {"SET DateStyle TO 'German'"},
      {"SET standard_conforming_strings TO off"},
      {"SET TRANSACTION READ ONLY"},
      {"SET default_transaction_isolation TO 'serializable'"},
      {"SET session_replication_role TO replica"},
      {"SET CONSTRAINTS ALL IMMEDIATE"},
      {"RESET ALL"},
      {"CREATE TEMP TABLE effects (key text, note text)"},
      {"SELECT 'a' AS key, 'b' AS note INTO  TEMP effects"},
      {"SELECT 'a' AS key, 'b' AS note INTO\nLOCAL TEMP effects"},
      {"SELECT 'a' AS key, 'b' AS note INTO pg_temp.effects"},
      {"WITH x AS (SELECT 'a' AS key) SELECT key, key AS note INTO TEMP effects FROM x"},
      {"SELECT tools.shadow()"},
      {"SELECT count(*) FROM tools.shadow()"},
      {"DROP TABLE effects"},
      {"LOCK TABLE effects"},
  };
  return all;
}

inline Program draw_program(Random& random) {
  Program program;
  for (std::size_t i = draw(random, 4); i > 0; --i) {
    const auto& phrase = phrases()[draw(random, phrases().size())];
    const auto through = static_cast<Step::Through>(draw(random, 4));
    const bool mixed = draw(random, 3) == 0;
    for (const char* const text : phrase)
      program.steps.push_back({text, mixed ? static_cast<Step::Through>(draw(random, 4)) : through,
                               draw(random, 3) > 0});
  }
  program.end = draw(random, 2) == 0 ? End::returns : static_cast<End>(draw(random, 7));
  return program;
}

inline void replace(std::string& text, const char* what, const std::string& with) {
  if (const auto at = text.find(what); at != std::string::npos) text.replace(at, 2, with);
}

inline void take(const Step& step, Context& context) {
  if (step.text == "<commit>") return context.pqxx().commit();
  if (step.text == "<abort>") return context.pqxx().abort();
  const bool has_value = step.text.find("$1") != std::string::npos;
  const std::string text = has_value && step.through >= Step::Through::pqxx
                               ? std::string("SELECT 'no number'::int")
                               : step.text;
  switch (step.through) {
    case Step::Through::sql: has_value ? context.sql(text, "no number") : context.sql(text); return;
    case Step::Through::write:
      has_value ? context.write(text, "no number") : context.write(text);
      return;
    case Step::Through::pqxx: context.pqxx().exec(text); return;
    case Step::Through::subtransaction: {
      pqxx::subtransaction inner(context.pqxx(), "inner");
      inner.exec(text);
      inner.commit();
      return;
    }
  }
}

inline void play(const Program& program, Context& context, const std::string& key, int run) {
  for (Step step : program.steps) {
    replace(step.text, "$K", key);
    replace(step.text, "$R", std::to_string(run));
    if (!step.swallows) {
      take(step, context);
      continue;
    }
    try {
      take(step, context);
    } catch (const std::exception&) {
    }
  }
  switch (program.end) {
    case End::returns: return;
    case End::throws: throw std::runtime_error("boom");
    case End::rejects: throw Reject("no");
    case End::retries: throw Retry("later", std::chrono::milliseconds(0));
    case End::nests: try { context.sql("SELECT 1 / 0");
      } catch (...) {
        std::throw_with_nested(std::runtime_error("boom"));
      }
      return;
    case End::throws_sql_error: try { context.sql("SELECT 1 / 0");
      } catch (SqlError& error) {
        throw SqlError(error);
      }
      return;
    case End::throws_a_number: throw 7;
  }
}

}  // namespace hapax::flow::grammar
