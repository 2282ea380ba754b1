// Views are functions from the state to a description of elements; render makes
// the document agree with it and touches nothing that is right already, so focus,
// selection and what somebody is typing survive.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * @typedef {object} Item
 * @property {string} tag Empty for text.
 * @property {string} text
 * @property {Props} props
 * @property {Item[]} children
 * @property {Element | Text} [node]
 *
 * @typedef {Record<string, any> & { key?: string | number, mounted?: (element: any) => void }} Props
 * @typedef {Item | string | number | null | undefined | false | Child[]} Child
 */

/**
 * Describes an element. Props are attributes; `on…` are listeners, `key` tells
 * siblings apart, `mounted` is called once with the element when it is in the
 * document. False, null and undefined are no attribute and no child.
 *
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {Item}
 */
export function h(tag, props, ...children) {
  return { tag, text: '', props: props ?? {}, children: itemsOf(children) };
}

/** @param {Child[]} children @returns {Item[]} */
function itemsOf(children) {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    if (Array.isArray(child)) return itemsOf(child);
    return typeof child === 'object' ? [child] : [{ tag: '', text: String(child), props: {}, children: [] }];
  });
}

/** @type {WeakMap<Element, Item[]>} */
const rendered = new WeakMap();

/**
 * Makes the children of an element what they are described as.
 *
 * @param {Element} parent
 * @param {...Child} children
 */
export function render(parent, ...children) {
  const next = itemsOf(children);
  /** @type {(() => void)[]} */
  const mounts = [];
  reconcile(parent, rendered.get(parent) ?? [], next, mounts);
  rendered.set(parent, next);
  for (const mount of mounts) mount();
}

/**
 * @param {Element} parent
 * @param {Item[]} before
 * @param {Item[]} next
 * @param {(() => void)[]} mounts
 */
function reconcile(parent, before, next, mounts) {
  const left = new Set(before);
  /** @type {ChildNode | null} */
  let place = parent.firstChild;
  for (const item of next) {
    const old = matching(left, item);
    if (old?.node) {
      left.delete(old);
      item.node = old.node;
      update(old, item, mounts);
    } else {
      item.node = create(parent, item, mounts);
    }
    if (item.node === place) place = place.nextSibling;
    else parent.insertBefore(item.node, place);
  }
  for (const { node } of left) node?.remove();
}

/** @param {Set<Item>} items @param {Item} wanted */
function matching(items, wanted) {
  for (const item of items) {
    if (item.tag === wanted.tag && item.props.key === wanted.props.key) return item;
  }
  return undefined;
}

/**
 * @param {Element} parent
 * @param {Item} item
 * @param {(() => void)[]} mounts
 */
function create(parent, item, mounts) {
  if (!item.tag) return document.createTextNode(item.text);
  const inSVG = item.tag === 'svg' || parent.namespaceURI === SVG;
  const element = inSVG ? document.createElementNS(SVG, item.tag) : document.createElement(item.tag);
  for (const [name, value] of Object.entries(item.props)) apply(element, name, value);
  reconcile(element, [], item.children, mounts);
  const { mounted } = item.props;
  if (mounted) mounts.push(() => mounted(element));
  return element;
}

/**
 * @param {Item} old
 * @param {Item} item
 * @param {(() => void)[]} mounts
 */
function update(old, item, mounts) {
  const { node } = item;
  if (!(node instanceof Element)) {
    if (node && old.text !== item.text) node.data = item.text;
    return;
  }
  for (const name of new Set([...Object.keys(old.props), ...Object.keys(item.props)])) {
    if (old.props[name] !== item.props[name]) apply(node, name, item.props[name]);
  }
  reconcile(node, old.children, item.children, mounts);
}

/** @param {Element} element @param {string} name @param {any} value */
function apply(element, name, value) {
  if (name === 'key' || name === 'mounted') return;
  if (name.startsWith('on') || name === 'value' || name === 'checked') {
    /** @type {any} */ (element)[name] = value ?? null;
  } else if (value === false || value === null || value === undefined) {
    element.removeAttribute(name);
  } else if (name.startsWith('--')) {
    /** @type {HTMLElement} */ (element).style.setProperty(name, value);
  } else {
    element.setAttribute(name, value === true ? '' : String(value));
  }
}
