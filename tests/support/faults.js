/* Returns what is wrong with the words of a page. */
(() => {
  const light = text => {
    const [r, g, b] = text.match(/[\d.]+/g).map(Number).map(value => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const above = function* (element) {
    for (let at = element; at; at = at.parentElement) yield at;
  };
  const ground = element => {
    for (const at of above(element)) {
      const color = getComputedStyle(at).backgroundColor;
      if (!/, 0\)|transparent/.test(color)) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const contrast = element => {
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(ink), light(ground(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const boxOf = element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect();
  };
  const isMeantForEars = element => [...above(element)].some(
    at => at.classList.contains('hidden') || getComputedStyle(at).clipPath === 'inset(50%)');
  const cutBy = element => {
    const box = boxOf(element);
    for (const at of above(element)) {
      const style = getComputedStyle(at), outer = at.getBoundingClientRect();
      if (style.textOverflow === 'ellipsis' && at.closest('summary')) return null;
      const cuts = at === document.documentElement || at instanceof SVGSVGElement
        || /hidden|clip/.test(style.overflowX + style.overflowY);
      if (!cuts) continue;
      const beside = box.left < outer.left - 0.5 || box.right > outer.right + 0.5;
      const tall = at instanceof SVGSVGElement
        && (box.top < outer.top - 0.5 || box.bottom > outer.bottom + 0.5);
      if (beside || tall) return at;
    }
    return null;
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const tag = element.tagName.toLowerCase();
    if (!own || !element.checkVisibility() || /script|style|option|title/.test(tag)) continue;
    const words = element.textContent.trim().slice(0, 40), ratio = contrast(element);
    if (ratio < 4.5) found.push(`${words}: contrast ${ratio.toFixed(2)}`);
    if (isMeantForEars(element)) continue;
    const by = cutBy(element);
    if (by) found.push(`${words}: cut by ${by.tagName}.${by.getAttribute('class') || ''}`);
  }
  return found;
})()
