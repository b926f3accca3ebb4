#!/bin/sh
# Finds a Chromium for the tests of pages, or installs one: apt as root, else playwright's own.
# And axe-core, which looks for what keeps people out; without it the tests' own check runs alone.
# usage: tools/browser.sh BIN, the folder of the virtual environment's programs

for name in chromium chromium-browser google-chrome google-chrome-stable microsoft-edge; do
  found=$(command -v "$name") && break
done
if [ -z "$found$BYHAND_CHROMIUM" ]; then
  echo "Getting a Chromium (once) …"
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { timeout 180 apt-get install -y -qq --no-install-recommends chromium ||
      { timeout 60 apt-get update -qq && timeout 180 apt-get install -y -qq --no-install-recommends chromium; }; } \
      >/dev/null 2>&1
  fi
  command -v chromium >/dev/null || timeout 120 "$1"/python -m playwright install chromium \
    >/dev/null 2>&1 || echo "NO CHROMIUM: the tests of pages will be skipped" >&2
fi
axe=build/axe-core
if [ ! -e $axe/package/axe.min.js ] && command -v npm >/dev/null; then
  mkdir -p $axe && (cd $axe && timeout 60 npm pack --silent axe-core@4.14.0 >/dev/null 2>&1 &&
    tar xzf axe-core-*.tgz)
fi
[ -e $axe/package/axe.min.js ] || [ -n "$BYHAND_AXE" ] ||
  echo "no axe-core: the tests of pages check accessibility by themselves alone" >&2
exit 0
