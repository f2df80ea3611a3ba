// The address of a view, and its files. An address has no key: another browser needs a link of its own.

const NUMBERS = ['at', 'zoom', 'job', 'array', 'past'];

/** Returns the part of the address behind `#`: the middle of the chart, its width in seconds, the chosen job or array, and an earlier instant. */
export function addressOf({ chart, chosen, whole, past }) {
  const span = chart.scale * chart.width(), seconds = at => Math.round(at / 1000);
  const parts = { at: chart.follow ? null : seconds(chart.from + span / 2), zoom: Math.max(seconds(span), 1), job: whole ? null : chosen, array: whole ? chosen : null,
    past: past === null ? null : seconds(past), by: chart.by };
  return `#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value !== null))}`;
}

/** Returns what an address has, or null for one without a view. Times are milliseconds. */
export function parsed(hash) {
  const given = new URLSearchParams(hash.slice(1)), found = { by: given.get('by') };
  for (const key of NUMBERS) found[key] = given.has(key) && Number.isFinite(+given.get(key)) ? +given.get(key) : null;
  for (const key of ['at', 'zoom', 'past']) if (found[key] !== null) found[key] *= 1000;
  // No job has another number, and no time is later.
  for (const key of NUMBERS) if (!Number.isSafeInteger(found[key]) || Math.abs(found[key]) > 8.64e15) found[key] = null;
  return Object.values(found).some(value => value !== null) ? found : null;
}

/** Returns the question for the chart as it is shown. */
export const picture = chart => new URLSearchParams({ from: chart.from, scale: chart.scale, width: chart.width(), now: chart.present, at: chart.now, rows: chart.places.map(place => place.row).join(), by: chart.by, dark: chart.dark.matches });

/** Returns an SVG text as PNG of twice its size. */
export async function png(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob(file => file ? resolve(file) : reject(new Error('the picture is too large')), 'image/png'));
}

/** Gives a file to the browser. */
export function save(content, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10e3);
}
