// Pictures as PDF.

/** Prints a picture alone, on a page of its own size: the browser's dialog saves it as PDF. */
export async function printPicture(svg) {
  const image = new Image(), sheet = new CSSStyleSheet();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  Object.assign(image, { className: 'sheet', alt: '' });
  await image.decode();
  const [width, height] = [image.naturalWidth, image.naturalHeight].map(size => Math.ceil(size));
  sheet.replaceSync(`@page { size: ${width}px ${height}px; margin: 0 }
    .sheet { display: none }
    @media print { html, body { margin: 0; padding: 0 } body > :not(.sheet) { display: none !important }
      .sheet { display: block; width: 100vw; height: 100vh; break-inside: avoid } }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  document.body.append(image);
  addEventListener('afterprint', () => {
    image.remove();
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter(other => other !== sheet);
  }, { once: true });
  print();
}
