// The state after a difference, as patch.rs makes it.

/** Returns a value after a patch. Parts that did not change are those of the old value. */
export function patched(old, patch) {
  if (Array.isArray(patch)) return patch[0];
  const value = Array.isArray(old) ? [...old] : { ...old };
  for (const [key, part] of Object.entries(patch)) {
    if (Array.isArray(part) && !part.length) delete value[key];
    else value[key] = patched(value[key], part);
  }
  return value;
}
