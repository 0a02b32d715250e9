// What .ci/pages adds to each page: a search that knows the text of all pages, and buttons that copy code.
// DocC's own script draws the page anew, so these stand beside what it draws, or come back when it has drawn.
(() => {
  const site = new URL("..", document.currentScript.src);
  const make = (tag, attributes, ...content) => {
    const element = document.createElement(tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    element.append(...content);
    return element;
  };

  const opener = make("button", { type: "button", class: "search-opener", "aria-keyshortcuts": "/" }, "Search");
  const field = make("input", {
    type: "search", placeholder: "Search all pages", "aria-label": "Search all pages", autocomplete: "off",
    autocapitalize: "off", spellcheck: "false",
  });
  const closer = make("button", { type: "button" }, "Close");
  const status = make("p", { role: "status" });
  const list = make("ol", {});
  const dialog = make("dialog", { class: "search", "aria-label": "Search" }, make("div", {}, field, closer), status, list);
  const said = make("p", { role: "status", class: "said" });
  document.body.prepend(opener);
  document.body.append(dialog, said);

  let index;
  // A page is its address, title and place (its module, and its type), and sections of an anchor and sentences.
  const load = async () => {
    const { places, pages } = await (await fetch(new URL("search.json", site))).json();
    return pages.map(([address, title, place, ...sections]) => ({
      address, title, place: places[place], sections,
      all: [title, ...sections.map(each => each[1])].join("\n").toLowerCase(),
    }));
  };

  // All words have to be in a page; titles count more than sentences, and beginnings of words more than the rest.
  const find = (pages, words) => {
    const begins = words.map(word => new RegExp("(?<![a-z0-9])" + word.replace(/[^\w\s]/g, "\\$&"), "gi"));
    const found = [];
    for (const page of pages) {
      if (!words.every(word => page.all.includes(word))) continue;
      const title = page.title.toLowerCase();
      let score = page.address.split("/").length < 4 ? 20 : 0, sentence = "", anchor = "", most = 0;
      words.forEach((word, n) => {
        score += title === word ? 65 : title.includes(word) ? 25 : 0;
        score += Math.min(page.all.match(begins[n])?.length ?? 0, 9) * 2;
      });
      for (const [target, text] of page.sections) {
        text.split("\n").forEach((line, at, lines) => {
          const lower = line.toLowerCase();
          let has = words.reduce((sum, word, n) => sum + lower.includes(word) + (lower.search(begins[n]) >= 0), 0);
          // Abstracts and headings say what a page is about, but a sentence says more than a heading.
          const isHeading = at === 0 && target;
          if (at === 0 && has) score += 10;
          if (isHeading && has) has -= .5;
          if (has > most) [most, sentence, anchor] = [has, isHeading ? `${line}: ${lines[1] ?? ""}` : line, target];
        });
      }
      found.push({ page, score, anchor, sentence: sentence || page.sections[0]?.[1].split("\n")[0] || "" });
    }
    return found.sort((a, b) => b.score - a.score || a.page.title.length - b.page.title.length);
  };

  const marked = (text, words) => {
    const first = Math.min(...words.map(word => text.toLowerCase().indexOf(word)).filter(at => at >= 0), text.length);
    if (text.length > 220 && first > 90) text = "… " + text.slice(text.indexOf(" ", first - 80) + 1);
    if (text.length > 220) text = text.slice(0, 210) + " …";
    const any = new RegExp("(" + words.map(word => word.replace(/[^\w\s]/g, "\\$&")).join("|") + ")", "i");
    return text.split(any).map((part, n) => n % 2 ? make("mark", {}, part) : part);
  };

  const search = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = [];
    try {
      found = words.length ? find(await (index ??= load()), words) : [];
    } catch {
      index = undefined;
      return void (status.textContent = "The index of the pages could not be read.");
    }
    if (words.join() !== field.value.toLowerCase().split(/\s+/).filter(Boolean).join()) return;
    const shown = found.slice(0, 60);
    status.textContent = !words.length ? "" : found.length === 0 ? "No page has these words."
      : `${found.length} page${found.length > 1 ? "s" : ""}` + (found.length > 60 ? ", the first 60:" : ":");
    list.replaceChildren(...shown.map(({ page, anchor, sentence }) => make("li", {}, make("a",
      { href: new URL(page.address + (anchor ? "#" + anchor : ""), site) }, make("b", {}, ...marked(page.title, words)),
      " ", make("small", {}, page.place), make("p", {}, ...marked(sentence, words))))));
  };

  const open = words => {
    if (!dialog.open) dialog.showModal();
    if (words !== undefined) field.value = words;
    field.select();
    search();
  };
  const openFragment = () => {
    if (location.hash.startsWith("#search=")) open(decodeURIComponent(location.hash.slice(8)));
  };
  opener.addEventListener("click", () => open());
  closer.addEventListener("click", () => dialog.close());
  field.addEventListener("input", search);
  list.addEventListener("click", event => event.target.closest("a") && dialog.close());
  dialog.addEventListener("click", event => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", event => {
    const stops = [field, ...list.querySelectorAll("a")], at = stops.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && at >= 0) stops[Math.max(0, Math.min(at + step, stops.length - 1))].focus();
    else if (event.key === "Enter" && at === 0) stops[1]?.click();
    else return;
    event.preventDefault();
  });
  addEventListener("keydown", event => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    open();
  }, true);
  addEventListener("hashchange", openFragment);
  openFragment();

  // Of a session in a shell only the commands are copied, with the lines that a backslash adds to them.
  const commands = pre => {
    const drawn = [...pre.querySelectorAll(".code-line")].map(line => line.textContent.trimEnd());
    const lines = drawn.length ? drawn : pre.textContent.trimEnd().split("\n");
    if (!lines.some(line => line.startsWith("$ "))) return lines.join("\n");
    return lines.filter((line, n) => line.startsWith("$ ") || lines[n - 1]?.endsWith("\\"))
      .map(line => line.replace(/^\$ /, "")).join("\n");
  };
  const copy = async text => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page without TLS has no clipboard but this.
      const area = document.body.appendChild(make("textarea", {}, text));
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const addButtons = () => {
    // What is marked as text is what a program prints.
    for (const block of document.querySelectorAll(":is(.listing, .code-listing):not([data-syntax=text], :has(.copier))")) {
      const button = make("button", { type: "button", class: "copier", "aria-label": "Copy code" }, "Copy");
      button.addEventListener("click", async () => {
        await copy(commands(block.querySelector("pre")));
        said.textContent = button.textContent = "Copied";
        setTimeout(() => { said.textContent = ""; button.textContent = "Copy"; }, 1500);
      });
      block.append(button);
    }
  };
  new MutationObserver(addButtons).observe(document.body, { childList: true, subtree: true });
  addButtons();
})();
