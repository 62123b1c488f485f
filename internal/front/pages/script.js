// Refreshes the page while it is visible, and copies examples. Without it, everything on
// the page can be read all the same.
(() => {
  'use strict';
  const main = () => document.querySelector('main');
  const stops = (m) => [...m.querySelectorAll('a, button, summary, pre')];
  let tag = null;
  const wait = () => setTimeout(refresh, 'busy' in main().dataset ? 3000 : 30000);
  function show(text) {
    const now = main();
    const next = new DOMParser().parseFromString(text, 'text/html').querySelector('main');
    if (!next) { return; }
    const focus = document.activeElement;
    const at = stops(now).indexOf(focus);
    const same = (e) => e && e.outerHTML === focus.outerHTML;
    const open = [...now.querySelectorAll('details[open]')].map((d) => d.id);
    now.replaceWith(next);
    open.forEach((id) => { const d = document.getElementById(id); if (d) { d.open = true; } });
    buttons();
    const all = stops(next);
    if (at >= 0) { (same(all[at]) ? all[at] : all.find(same))?.focus({preventScroll: true}); }
  }
  function refresh() {
    if (document.hidden) { wait(); return; }
    fetch(location.href, {headers: tag ? {'If-None-Match': tag} : {}}).then((r) => {
      if (r.status === 200) {
        tag = r.headers.get('ETag');
        return r.text().then(show).then(wait);
      }
      if (r.status === 304 || r.status >= 500) { wait(); } else { location.reload(); }
    }, wait);
  }
  function buttons() {
    document.querySelectorAll('pre[data-copy]').forEach((pre) => {
      const b = document.createElement('button');
      b.type = 'button';
      b.className = 'copy';
      b.textContent = 'Copy';
      b.onclick = () => navigator.clipboard.writeText(pre.textContent).then(() => {
        b.textContent = 'Copied';
        setTimeout(() => { b.textContent = 'Copy'; }, 2000);
      });
      pre.before(b);
    });
  }
  const enter = document.querySelector('form[data-enter]');
  if (enter) { enter.submit(); } else if ('live' in main().dataset) { buttons(); wait(); }
})();
