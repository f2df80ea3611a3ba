// The rectangles of bars that the two painters of a scene draw: colour, opacity, left, top, width, height.
(() => {
  const attribute = (element, name) => +(element.getAttribute(name) ?? 1);

  /** Those that the chart paints on its canvas. A bar on the border of two parts is painted in both. */
  const painted = chart => {
    const real = chart.context, found = new Map();
    const colours = new Set([...chart.legend().entries.map(entry => entry[chart.ink.theme][0]), chart.ink.bad, chart.ink.ink]);
    const key = rectangle => JSON.stringify(rectangle.map(part => typeof part === 'number' ? Math.round(part * 10) / 10 : part));
    chart.context = new Proxy(real, {
      get(target, name) {
        const value = target[name];
        if (name === 'fillRect') return (left, top, width, height) => {
          const rectangle = [target.fillStyle, target.globalAlpha, left, top, width, height];
          if (colours.has(target.fillStyle) && top < chart.below - 4) found.set(key(rectangle), rectangle);
        };
        return typeof value === 'function' ? value.bind(target) : value;
      },
      set(target, name, value) { target[name] = value; return true; },
    });
    chart.paint();
    chart.context = real;
    chart.draw();
    return [...found.values()];
  };

  /** Those of an SVG with these rules. */
  const drawn = (svg, rules) => {
    const fills = new Map([...rules.matchAll(/(?<=^|\})\.scene \.(\w+)\{fill:(#\w+)\}/g)].map(([, name, fill]) => [name, fill]));
    return [...svg.querySelectorAll('.bars path:not(.edge, .rim)')].flatMap(path => {
      const fill = fills.get(['bad', 'bracket', ...path.classList].find(name => path.classList.contains(name) && fills.has(name)));
      return [...path.getAttribute('d').matchAll(/M(\S+) (\S+?)h(.+?)v(.+?)h[^Z]+Z/g)].map(([, ...places]) => [fill, attribute(path, 'fill-opacity'), ...places.map(Number)]);
    });
  };

  return { painted, drawn };
})()
