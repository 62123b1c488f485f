// Refreshes the page while it is visible, and copies examples. Without it, everything on
// the page can be read all the same.
(function () {
  'use strict';
  var tag = null;
  function wait() {
    var busy = document.querySelector('main[data-busy]');
    setTimeout(refresh, busy ? 3000 : 30000);
  }
  function refresh() {
    if (document.hidden) { wait(); return; }
    fetch(location.href, {headers: tag ? {'If-None-Match': tag} : {}, credentials: 'same-origin'}).then(function (r) {
      if (r.status === 200) {
        tag = r.headers.get('ETag');
        return r.text().then(function (text) {
          var next = new DOMParser().parseFromString(text, 'text/html').querySelector('main');
          var now = document.querySelector('main');
          if (next && now.innerHTML !== next.innerHTML) {
            var open = [].map.call(now.querySelectorAll('details[open]'), function (d) { return d.id; });
            now.replaceWith(next);
            open.forEach(function (id) { var d = document.getElementById(id); if (d) { d.open = true; } });
            buttons();
          }
          wait();
        });
      }
      if (r.status === 304 || r.status >= 500) { wait(); } else { location.reload(); }
    }, wait);
  }
  function buttons() {
    document.querySelectorAll('pre[data-copy]').forEach(function (pre) {
      var b = document.createElement('button');
      b.type = 'button';
      b.className = 'copy';
      b.textContent = 'Copy';
      b.addEventListener('click', function () {
        navigator.clipboard.writeText(pre.textContent).then(function () {
          b.textContent = 'Copied';
          setTimeout(function () { b.textContent = 'Copy'; }, 2000);
        });
      });
      pre.parentNode.insertBefore(b, pre);
    });
  }
  var enter = document.querySelector('form[data-enter]');
  if (enter) { enter.submit(); return; }
  if (document.querySelector('main[data-live]')) { buttons(); wait(); }
})();
