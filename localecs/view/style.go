package view

// pageStyle is the page's style sheet. The colours are those of Okabe and Ito, which are
// distinct in every kind of colour vision; each state also has its own pattern or
// height, for paper and greyscale.
const pageStyle = `
:root{--bg:#fff;--fg:#1b1f24;--soft:#5a6470;--line:#c9d1d9;--ground:#f4f6f8;--up:#8fa3b5;--good:#0072b2;--bad:#d55e00;--warn:#e69f00;--hatch:#5a6470;--pale:#dfe5ea;--token:#b0679a;--fault:#e69f00;--faultbg:#fdf0d2;--step:#dce6ee;--link:#0060a0}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e4e9ee;--soft:#9aa7b4;--line:#3a444f;--ground:#1b2127;--up:#64788b;--good:#4aa8e0;--bad:#ff8a3d;--warn:#f0b429;--hatch:#9aa7b4;--pale:#2c353e;--token:#d38fbe;--fault:#f0b429;--faultbg:#3d3214;--step:#2b3a47;--link:#7cc4f5}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1432px;margin:0 auto;padding:20px 24px 48px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:28px 0 4px;border-top:1px solid var(--line);padding-top:14px}
.outcome{font-size:14px;font-weight:600;padding:2px 10px;border-radius:10px;vertical-align:4px;border:1.5px solid var(--good);color:var(--good)}
.outcome.failed{border-color:var(--bad);color:var(--bad)}.outcome.interrupted{border:1.5px dashed var(--warn);color:var(--fg)}
.facts{color:var(--soft);margin:0 0 8px}.task .facts span{margin-right:12px}
.failures{margin:8px 0;padding:8px 12px 8px 28px;border-left:4px solid var(--bad);background:var(--ground);overflow-wrap:anywhere;white-space:pre-wrap}
nav a{margin-right:10px;color:var(--link)}a{color:var(--link)}
svg{display:block;max-width:100%;height:auto}
svg.narrow{display:none}
.phases{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,600px),1fr));gap:8px 24px}
figure{margin:6px 0;min-width:0}figcaption{font-weight:600;margin-bottom:4px}figcaption small{font-weight:400;color:var(--soft);margin-left:8px}
.phases svg{max-width:min(100%,760px);width:100%}.life svg{max-width:min(100%,700px);width:100%}
dl{display:flex;flex-wrap:wrap;gap:2px 18px;margin:6px 0 2px;font-size:13px}dl div{display:flex;gap:6px}dt{font-weight:600;color:var(--link)}dd{margin:0}
.durations{margin:2px 0;font-size:13px;color:var(--soft)}.durations span{margin-right:14px;white-space:nowrap}b{color:var(--fg)}
details{margin:6px 0}summary{cursor:pointer;color:var(--link)}
table{border-collapse:collapse;font-size:12.5px;margin:6px 0}th,td{text-align:left;padding:2px 10px 2px 0;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:anywhere}td.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.legend ul{list-style:none;padding:0;margin:6px 0;display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:2px 18px;font-size:13px}.legend li{display:flex;gap:8px;align-items:center}.legend svg{flex:none}.legend p{color:var(--soft);font-size:13px;margin:6px 0}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:var(--fg)}
.note,.tick{fill:var(--soft)}.name.check,.name.token,.name.traffic{fill:var(--soft)}.momentlabel{fill:var(--link)}.bandlabel{pointer-events:none}
.ground{fill:var(--ground)}.axis{stroke:var(--soft);stroke-width:1}.moment{stroke:var(--link);stroke-width:1;stroke-dasharray:3 3}
.s{stroke:none}.waiting{fill:var(--up);opacity:.8}.out{fill:var(--soft)}.up{fill:var(--up)}.unknown{fill:url(#p-unknown);stroke:var(--hatch);stroke-width:.7}.healthy{fill:var(--good)}
.warning{fill:url(#p-warning);stroke:var(--warn);stroke-width:.8}.unhealthy{fill:url(#p-unhealthy);stroke:var(--bad);stroke-width:.8}.held{fill:var(--token)}
.answered{fill:var(--up)}.lost{fill:var(--bad);stroke:var(--fg);stroke-width:.8}
.step{fill:var(--step);stroke:var(--bg);stroke-width:1}.phaseband{fill:var(--pale)}.fault{fill:var(--faultbg);stroke:var(--fault);stroke-width:1}.error{stroke:var(--bad);stroke-width:2;stroke-dasharray:3 2}
.cut{fill:url(#p-cut);stroke:var(--line);stroke-width:.8}.none{fill:none}
.m{stroke:var(--fg);stroke-width:1;fill:none}.term{fill:var(--warn)}.kill{stroke:var(--bad);stroke-width:3}.again{fill:var(--bg);stroke-width:1.8}.exit{stroke-width:2}.badexit{fill:var(--bad)}.sick{fill:var(--bad)}
@media (max-width:1000px){svg.wide{display:none}svg.narrow{display:block}main{padding:16px}}
@media print{:root{--bg:#fff;--fg:#000;--soft:#444;--line:#bbb;--ground:#f4f6f8;--up:#8fa3b5;--good:#0072b2;--bad:#d55e00;--warn:#e69f00;--hatch:#5a6470;--pale:#dfe5ea;--token:#b0679a;--fault:#e69f00;--faultbg:#fdf0d2;--step:#dce6ee;--link:#0060a0}
body{-webkit-print-color-adjust:exact;print-color-adjust:exact;font-size:11px}main{padding:0;max-width:none}nav{display:none}svg.wide{display:none}svg.narrow{display:block}.phases{display:block}.task{break-before:page}figure,.legend{break-inside:avoid}h2,.facts,summary{break-after:avoid}}
`

// patterns are the SVG patterns that the style sheet refers to.
const patterns = `<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>
<pattern id="p-unknown" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" style="fill:var(--pale)"/><rect width="2" height="6" style="fill:var(--hatch)"/></pattern>
<pattern id="p-unhealthy" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" style="fill:var(--bg)"/><path d="M0,0 L5,5 M5,0 L0,5" style="stroke:var(--bad);stroke-width:1.6"/></pattern>
<pattern id="p-warning" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" style="fill:var(--faultbg)"/><circle cx="2.5" cy="2.5" r="1.3" style="fill:var(--warn)"/></pattern>
<pattern id="p-cut" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(20)"><rect width="8" height="8" style="fill:var(--bg);fill-opacity:.75"/><rect width="1.5" height="8" style="fill:var(--soft)"/></pattern>
</defs></svg>
`
