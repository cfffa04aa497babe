"""PURE. The style sheet of the page of all models: light, dark, narrow and on paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #16191d; --faint: #5b6470; --line: #d9dde3;
  --held: #7fa8d9; --over: #d2493a; --limit: #16191d; --told: #7a5ccf; --target: #14804a;
  --warn: #9a5b00; --link: #1d5fae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2126; --ink: #e8eaed; --faint: #a3acb8; --line: #363c45;
    --held: #4f7fb8; --over: #e86a5c; --limit: #e8eaed; --told: #b39df0; --target: #4fc78a;
    --warn: #f0b35a; --link: #8ab8f0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 90rem; padding: 1rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
header p, .about { color: var(--faint); margin: 0 0 1rem; }
.about { margin-bottom: .5rem; overflow-wrap: anywhere; }
a { color: var(--link); }
.overview, article {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem;
}
.overview { padding: .25rem 1rem; margin-bottom: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
th:nth-child(n+5):nth-child(-n+7), td:nth-child(n+5):nth-child(-n+7) { text-align: right; }
td:nth-child(n+5) { white-space: nowrap; font-variant-numeric: tabular-nums; }
tbody tr:last-child td { border-bottom: 0; }
td { overflow-wrap: anywhere; }
td:first-child { min-width: 10rem; } td:nth-child(4) { min-width: 6rem; }
.legend {
  display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0 0 1rem; color: var(--faint);
}
.legend i {
  display: inline-block; width: 1.25rem; height: .7rem; margin-right: .4rem; vertical-align: -1px;
}
.legend i.held { background: var(--held); } .legend i.over { background: var(--over); }
.legend i.limit, .legend i.told, .legend i.target { height: 0; vertical-align: .25rem; }
.legend i.limit { border-top: 2px solid var(--limit); }
.legend i.told { border-top: 2px dotted var(--told); }
.legend i.target { border-top: 2px dashed var(--target); }
.legend b { color: var(--over); }
svg .mark {
  fill: var(--over); font-size: 14px; font-weight: 700; stroke: var(--card); stroke-width: 3px;
  paint-order: stroke;
}
.models {
  display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
}
article:target { outline: 2px solid var(--link); }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0 0 .5rem; }
dt { color: var(--faint); font-size: .8rem; }
dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; max-width: 36rem; height: auto; }
svg text { font: 10px system-ui, sans-serif; }
.axis { fill: var(--faint); }
.grid { stroke: var(--line); }
rect.held { fill: var(--held); } rect.over { fill: var(--over); }
path, .target { fill: none; stroke-width: 1.75; }
path.limit { stroke: var(--limit); }
path.told { stroke: var(--told); stroke-dasharray: 1.5 3; stroke-linecap: round; }
line.target { stroke: var(--target); stroke-dasharray: 6 4; }
.badge {
  display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem;
  font-size: .78rem; font-weight: 600; white-space: nowrap; color: var(--faint);
}
.badge.high { color: var(--target); } .badge.medium { color: var(--link); }
.badge.capped { color: var(--warn); }
.reasons { margin: .5rem 0; padding: 0; list-style: none; font-size: .87rem; color: var(--faint); }
.reasons li { overflow-wrap: anywhere; }
.reasons b { color: var(--ink); }
details { font-size: .87rem; }
details ul { margin: .25rem 0 0; padding-left: 1.2rem; }
summary { cursor: pointer; color: var(--link); }
footer { margin-top: 1.5rem; color: var(--faint); font-size: .9rem; overflow-wrap: anywhere; }
@media screen and (max-width: 60rem) {
  thead { position: absolute; left: -100vw; }
  tr { display: grid; grid-template-columns: repeat(3, 1fr); padding: .6rem 0; gap: .25rem .75rem; }
  tbody tr { border-bottom: 1px solid var(--line); }
  tbody tr:last-child { border-bottom: 0; }
  td:nth-child(n+1):nth-child(-n+8) {
    border: 0; padding: 0; text-align: left; white-space: normal;
  }
  td:first-child, td:last-child { grid-column: 1 / -1; }
  td:nth-child(n+2):nth-child(-n+7)::before {
    content: attr(data-title); display: block; color: var(--faint); font-size: .75rem;
  }
}
@media print {
  :root {
    --page: #ffffff; --card: #ffffff; --ink: #000000; --faint: #444444; --line: #bbbbbb;
    --held: #a9c3e3; --over: #c03a2b; --limit: #000000; --told: #6546b8; --target: #0d6a3b;
    --warn: #7a4800; --link: #000000;
  }
  body { max-width: none; padding: 0; font-size: 9pt; line-height: 1.35; }
  .models { display: block; columns: 2; column-gap: .5rem; }
  article { break-inside: avoid; padding: .5rem .6rem; margin-bottom: .5rem; }
  article h2 { font-size: 10pt; }
  dl, .reasons { margin: .25rem 0; }
  svg { max-height: 34mm; }
  table { font-size: .85em; }
  tr { break-inside: avoid; }
  details { display: none; }
  a { text-decoration: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
