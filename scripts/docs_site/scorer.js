// How Sphinx's search ranks pages: its own marks, but lab notes come behind the users' pages.
var Scorer = {
  score: ([page, , , , score]) => (page.startsWith("docs/lab/") ? score - 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
