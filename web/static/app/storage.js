// What a browser keeps, or what this page remembers where it may not keep anything.

/** @param {() => Storage} open */
function storage(open) {
  /** @type {Map<string, string>} */
  const memory = new Map();
  return {
    /** @param {string} key */
    get(key) {
      try {
        return open().getItem(key);
      } catch {
        return memory.get(key) ?? null;
      }
    },
    /** @param {string} key @param {string} value */
    set(key, value) {
      try {
        open().setItem(key, value);
      } catch {
        memory.set(key, value);
      }
    },
    /** @param {string} key */
    remove(key) {
      try {
        open().removeItem(key);
      } catch {
        memory.delete(key);
      }
    },
  };
}

/** For all tabs, and for good. */
export const kept = storage(() => localStorage);

/** For this tab, while it is open. */
export const tab = storage(() => sessionStorage);
