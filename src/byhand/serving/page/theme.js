// Light, dark, or as the system has it.  The style sheets say "dark" once, as a media query; what a
// person chooses makes that query always or never true.

const CHOICES = ["system", "light", "dark"];
const QUERY = "(prefers-color-scheme: dark)";
const queries = { system: QUERY, light: "not all", dark: "all" };
const dark = [];

function chosen() {
  try { return CHOICES.includes(localStorage.theme) ? localStorage.theme : "system"; } catch { return "system"; }
}

function apply() {
  if (!dark.length) {
    for (const sheet of document.styleSheets) {
      for (const rule of sheet.cssRules) if (rule.media?.mediaText === QUERY) dark.push(rule);
    }
  }
  for (const rule of dark) rule.media.mediaText = queries[chosen()];
  document.documentElement.dataset.theme = chosen();
}

export const themes = {
  apply,
  next() {
    try { localStorage.theme = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length]; } catch { /* forbidden: as the system has it */ }
    apply();
  },
  chosen,
};
