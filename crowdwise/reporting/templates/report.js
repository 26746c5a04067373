"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);

  // An element with a class and children; text is always text.
  const make = (name, kind, ...children) => {
    const element = document.createElement(name);
    if (kind) element.className = kind;
    element.append(...children);
    return element;
  };

  // Lists and tables show their first rows, and more when asked: thousands of rows cost nothing until then.
  const limited = (holder, rowsOf) => {
    const first = Number(holder.dataset.more);
    const button = make("button", "more");
    button.type = "button";
    let limit = first;
    const show = () => {
      let seen = 0;
      for (const row of rowsOf()) {
        row.hidden = Boolean(row.dataset.out) || seen >= limit;
        if (!row.dataset.out) seen += 1;
      }
      button.hidden = seen <= limit;
      button.textContent = `Show ${Math.min(200, seen - limit).toLocaleString("en")} more of ${seen.toLocaleString("en")}`;
    };
    button.addEventListener("click", () => { limit += 200; show(); });
    (holder.closest(".scroll") || holder).after(button);
    show();
    return () => { limit = first; show(); };
  };

  const valueOf = (row, column, kind) => {
    const cell = row.rows[0].cells[column];
    if (kind === "text") return cell.textContent.trim();
    return Number(cell.dataset.v ?? cell.textContent.replace(/[^-\d.e]/g, ""));
  };
  const words = new Intl.Collator(undefined, { numeric: true });

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const rows = () => [...table.tBodies];
    const show = limited(table, rows);
    const heads = [...table.tHead.rows[0].cells];
    const status = make("p", "status");
    status.setAttribute("role", "status");
    table.closest(".scroll").after(status);

    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      button.addEventListener("click", () => {
        const kind = button.dataset.sort;
        const was = head.getAttribute("aria-sort");
        const down = was ? was === "ascending" : kind === "number";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = rows().map((row) => [valueOf(row, column, kind), row]);
        keyed.sort((a, b) => (kind === "text" ? words.compare(a[0], b[0]) : a[0] - b[0]) * (down ? -1 : 1));
        table.append(...keyed.map((pair) => pair[1]));
        show();
        status.textContent = `Sorted by ${button.textContent}, ${down ? "descending" : "ascending"}.`;
      });
    });

    const said = new Map(rows().map((row) => [row, [...row.rows[0].cells].map((cell) => cell.textContent).join(" ").toLowerCase()]));
    const search = document.querySelector(`[data-filter="${table.id}"]`);
    const only = document.querySelector(`[data-flagged="${table.id}"]`);
    const filter = () => {
      const wanted = search ? search.value.trim().toLowerCase() : "";
      let left = 0;
      for (const row of rows()) {
        const out = (wanted && !said.get(row).includes(wanted)) || (only?.checked && !row.classList.contains("flagged"));
        if (out) row.dataset.out = "1"; else { delete row.dataset.out; left += 1; }
      }
      show();
      status.textContent = wanted || only?.checked ? `${left.toLocaleString("en")} of ${rows().length.toLocaleString("en")} rows.` : "";
    };
    search?.addEventListener("input", filter);
    only?.addEventListener("change", filter);
  }

  for (const list of document.querySelectorAll("ul[data-more]")) limited(list, () => [...list.children]);

  // What an annotator mixes up: a row per class of the consensus, a column per answer.
  const confusion = (matrix, classes) => {
    const head = make("tr", "", make("td"), ...classes.map((name) => { const cell = make("th", "number", name); cell.scope = "col"; return cell; }));
    const rows = matrix.map((shares, k) => {
      const title = make("th", "", classes[k]);
      title.scope = "row";
      return make("tr", "", title, ...shares.map((share, c) => {
        const cell = make("td", k === c ? "number right" : "number wrong", `${Math.round(100 * share)}%`);
        cell.style.setProperty("--share", `${Math.round(42 * share)}%`);
        return cell;
      }));
    });
    const caption = make("caption", "", "Estimated share of answers (columns) by class (rows)");
    return make("table", "confusion", caption, make("thead", "", head), make("tbody", "", ...rows));
  };
  const listOf = (title, items) => make("div", "", make("h3", "", title), make("ul", "", ...items.map((words) => make("li", "", words))));

  const detail = (found) => {
    const parts = [];
    if (found.confusion) parts.push(confusion(found.confusion, data.classes));
    if (found.mixed_up) parts.push(listOf("Most frequent confusions", found.mixed_up.map((one) => `${one.truth} labelled ${one.said}: ${Math.round(100 * one.share)}%`)));
    const alone = found.alone;
    if (alone && alone.total) {
      const title = data.classes ? `The only one to give this label: ${alone.total.toLocaleString("en")} ${alone.total === 1 ? "example" : "examples"}` : "Furthest from the consensus";
      parts.push(listOf(title, alone.rows.map((one) => `${one.example}: labelled ${one.said}, consensus ${one.label}${one.text ? `. ${one.text}` : ""}`)));
    } else if (data.classes) parts.push(make("p", "note", "No label that only this annotator gave (on examples with three or more labels)."));
    return make("div", "detail", ...parts);
  };

  for (const button of document.querySelectorAll("[data-open]")) {
    button.addEventListener("click", () => {
      const row = button.closest("tr");
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      if (open) row.nextElementSibling.remove();
      else {
        const cell = make("td", "", detail(data.annotators[Number(button.dataset.open)]));
        cell.colSpan = row.cells.length;
        row.after(make("tr", "opened", cell));
      }
    });
  }

  // Tables as files: made here, so that the page needs nothing else.
  const quoted = (cell) => (/[",\n\r]/.test(String(cell)) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell));
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", () => {
      const name = button.dataset.save;
      const lines = data.tables[name].map((row) => row.map((cell) => quoted(cell ?? "")).join(",") + "\n");
      const link = make("a");
      link.href = URL.createObjectURL(new Blob(lines, { type: "text/csv" }));
      link.download = `${name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    const text = document.getElementById(button.dataset.copy).textContent;
    button.addEventListener("click", () => navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Select and copy by hand"; }));
  }
})();
