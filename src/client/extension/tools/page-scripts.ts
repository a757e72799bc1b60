/** Functions that run in a page, as source text. They only read the page, except for those that select text or options. */

/**
 * `get` reads a property of the browser, and `call` calls a method of it. Both work where an element hides the property by its name, as `<input
 * name="getAttribute">` does in a form.
 */
const NATIVE = `
  const native = (object, name) => {
    for (let from = Object.getPrototypeOf(object); from; from = Object.getPrototypeOf(from)) {
      const property = Object.getOwnPropertyDescriptor(from, name)
      if (property) return property
    }
    return {}
  }
  const get = (object, name) => native(object, name).get?.call(object)
  const call = (object, name, ...args) => native(object, name).value.call(object, ...args)`

/** `describe` returns the tag, attributes and text of an element, so that a reader finds it in the source of the page. */
const DESCRIBE = `${NATIVE}
  const plain = (text) => text.replace(/\\s+/g, ' ').trim().slice(0, 80)
  const describe = (element) => {
    const attribute = (name) => call(element, 'getAttribute', name)
    const names = ['id', 'class', 'name', 'type', 'aria-label'].filter(attribute)
    const attributes = names.map((name) => ' ' + name + '="' + plain(attribute(name)) + '"').join('')
    const text = plain(get(element, 'textContent') ?? '')
    return '<' + get(element, 'localName').slice(0, 80) + attributes + '>' + (text === '' ? '' : ' "' + text + '"')
  }
  const isDisabled = (element) =>
    call(element, 'matches', ':disabled') || call(element, 'closest', '[aria-disabled="true"]') !== null`

/**
 * `hitAt` returns the element at a point. It asks the tree of `element`, which may be a closed shadow tree. `isWithin` returns whether a click on `hit`
 * counts as a click on `element`.
 */
const HIT = `
  const hitAt = (element, x, y) => call(call(element, 'getRootNode'), 'elementFromPoint', x, y)
  const around = (node) => get(node, 'assignedSlot') ?? get(node, 'parentElement') ?? get(call(node, 'getRootNode'), 'host')
  const isWithin = (hit, element) => {
    for (let node = hit; node; node = around(node)) if (node === element) return true
    const label = call(hit, 'closest', 'label')
    if (label && get(label, 'control') === element) return true
    const slots = [...call(element, 'querySelectorAll', 'slot')]
    const filled = slots.flatMap((slot) => call(slot, 'assignedElements', { flatten: true }))
    if (filled.some((one) => call(one, 'contains', hit))) return true
    return getComputedStyle(element).pointerEvents === 'none' && call(hit, 'contains', element)
  }`

/** `this`: the element. Returns its state. The state `ready` comes with a point of the frame where the mouse hits the element. */
export const PROBE = `function () {
  ${DESCRIBE}
  ${HIT}
  if (!get(this, 'isConnected')) return { state: 'gone' }
  const what = describe(this)
  const rects = [...call(this, 'getClientRects')].filter(({ width, height }) => width > 0 && height > 0)
  if (rects.length === 0 || getComputedStyle(this).visibility !== 'visible') return { state: 'invisible', what }
  let cover
  for (const { left, top, right, bottom } of rects) {
    const [x1, y1] = [Math.max(left, 0), Math.max(top, 0)]
    const [x2, y2] = [Math.min(right, innerWidth), Math.min(bottom, innerHeight)]
    if (x2 <= x1 || y2 <= y1) continue
    for (const [h, v] of [[0.5, 0.5], [0.5, 0.25], [0.5, 0.75], [0.25, 0.5], [0.75, 0.5]]) {
      const [x, y] = [x1 + (x2 - x1) * h, y1 + (y2 - y1) * v]
      const hit = hitAt(this, x, y)
      if (hit !== null && isWithin(hit, this)) return { state: 'ready', what, isDisabled: isDisabled(this), x, y }
      cover ??= hit
    }
  }
  return cover ? { state: 'covered', what, cover: describe(cover) } : { state: 'outside', what }
}`

/**
 * `this`: the element that shows a frame, such as an `<iframe>`; arguments: a point in the frame. Returns the point in the parent frame, even if it is
 * not visible there.
 */
export const FRAME_OFFSET = `function (x, y) {
  const { left, top, width, height } = this.getBoundingClientRect()
  const { paddingLeft, paddingTop } = getComputedStyle(this)
  return {
    x: left + (this.clientLeft + parseFloat(paddingLeft) + x) * (width / this.offsetWidth),
    y: top + (this.clientTop + parseFloat(paddingTop) + y) * (height / this.offsetHeight),
  }
}`

/**
 * `this`: the element that shows a frame, such as an `<iframe>`; arguments: a point in the frame. Returns the point in the parent frame, or why the
 * mouse cannot reach the frame there.
 */
export const FRAME_POINT = `function (x, y) {
  ${DESCRIBE}
  ${HIT}
  const outer = (${FRAME_OFFSET}).call(this, x, y)
  const hit = hitAt(this, outer.x, outer.y)
  if (hit !== null && isWithin(hit, this)) return { state: 'ready', ...outer }
  return hit ? { state: 'covered', cover: describe(hit) } : { state: 'outside' }
}`

/** `this`: the element. Returns its rectangle in its frame. */
export const BOX = `function () {
  ${NATIVE}
  const { left, top, width, height } = call(this, 'getBoundingClientRect')
  return { x: left, y: top, width, height }
}`

/**
 * `this`: the element that shows a frame, such as an `<iframe>`; arguments: a point of the parent frame. Returns whether the mouse reaches the frame
 * there.
 */
export const IS_HIT = `function (x, y) {
  ${NATIVE}
  return call(call(this, 'getRootNode'), 'elementFromPoint', x, y) === this
}`

/** `this`: the element that shows a frame, such as an `<iframe>`. Returns whether the frame has the focus. */
export const HAS_FOCUS = `function () {
  ${NATIVE}
  return get(call(this, 'getRootNode'), 'activeElement') === this
}`

/**
 * `this`: the element. Returns how to enter text: `text`, or `keys` for a field with parts, such as a date. Any other `kind` says why it is not
 * possible.
 */
export const TEXT_FIELD = `function () {
  ${DESCRIBE}
  const what = describe(this)
  if (isDisabled(this)) return { kind: 'disabled', what }
  if (get(this, 'isContentEditable')) return { kind: 'text', what }
  const name = get(this, 'localName')
  if (name === 'textarea' || name === 'input') {
    if (this.readOnly) return { kind: 'readonly', what }
    if (name === 'textarea') return { kind: 'text', what }
    if (['text', 'search', 'url', 'email', 'tel', 'password', 'number'].includes(this.type)) return { kind: 'text', what }
    if (['date', 'time', 'datetime-local', 'month', 'week'].includes(this.type)) return { kind: 'keys', what }
  }
  return { kind: 'other', what }
}`

/** `this`: the focused field. Selects all of its text, so that typed text replaces it. Returns whether there is any. */
export const SELECT_TEXT = `function () {
  ${NATIVE}
  const { value: select } = native(this, 'select')
  if (select) select.call(this)
  else getSelection().selectAllChildren(this)
  return (select ? this.value : get(this, 'textContent')) !== ''
}`

/** `this`: the focused field. Moves the caret to the end. */
export const PUT_CARET_LAST = `function () {
  ${NATIVE}
  try {
    if (native(this, 'setSelectionRange').value) this.setSelectionRange(this.value.length, this.value.length)
    else if (get(this, 'isContentEditable')) {
      getSelection().selectAllChildren(this)
      getSelection().collapseToEnd()
    }
  } catch {
    // A field without a caret, such as one for numbers.
  }
}`

/** `this`: a select element; argument: values or labels. Selects exactly these options. */
export const SELECT_OPTIONS = `function (wanted) {
  ${DESCRIBE}
  const what = describe(this)
  if (get(this, 'localName') !== 'select') return { state: 'other', what }
  if (this.matches(':disabled')) return { state: 'disabled', what }
  if (wanted.length > 1 && !this.multiple) return { state: 'single', what }
  const label = (option) => option.label.replace(/\\s+/g, ' ').trim()
  const shown = (options) => options.slice(0, 50).map((option) => label(option).slice(0, 200))
  const all = [...this.options]
  const found = wanted.map((one) => all.find(({ value }) => value === one) ?? all.find((option) => label(option) === one))
  const missing = wanted.filter((_one, index) => found[index] === undefined)
  if (missing.length > 0) return { state: 'missing', what, missing, labels: shown(all) }
  const disabled = found.find((option) => option.matches(':disabled'))
  if (disabled) return { state: 'disabled', what: describe(disabled) }
  if (this.multiple) for (const option of all) option.selected = found.includes(option)
  else found[0].selected = true
  this.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
  this.dispatchEvent(new Event('change', { bubbles: true }))
  return { state: 'selected', what, labels: shown(found) }
}`

/** Argument: a CSS selector. Returns the matching elements as an array. */
export const QUERY = `function (selector) {
  return [...Document.prototype.querySelectorAll.call(document, selector)]
}`

/** `rootsIn` returns a document or shadow root, with all shadow roots inside it. */
const ALL_ELEMENTS = `
  const shadowRootsIn = (root) =>
    [...call(root, 'querySelectorAll', '*')].map((one) => get(one, 'shadowRoot')).filter((one) => one)
  const rootsIn = (first) => {
    const roots = [first]
    for (const root of roots) for (const inner of shadowRootsIn(root)) roots.push(inner)
    return roots
  }`

/** Returns the number of elements of a frame, including those in shadow trees. */
export const ELEMENTS = `function () {
  ${NATIVE}
  ${ALL_ELEMENTS}
  return rootsIn(document).reduce((sum, root) => sum + call(root, 'querySelectorAll', '*').length, 0)
}`

/** Argument: texts. Returns for each text whether the frame shows it. Ignores case, and treats all white space alike. */
export const SHOWN_TEXTS = `function (texts) {
  ${NATIVE}
  ${ALL_ELEMENTS}
  const plain = (text) => text.replace(/\\s+/g, ' ').trim().toLowerCase()
  const textOf = (root) => get(root, 'innerText') ?? [...get(root, 'children')].map((child) => get(child, 'innerText') ?? '').join(' ')
  const body = get(document, 'body')
  const all = body ? plain(rootsIn(body).map(textOf).join(' ')) : ''
  return texts.map((text) => all.includes(plain(text)))
}`

/** Returns the number of screen pixels in a CSS pixel, including the zoom of the page. */
export const PIXEL_RATIO = `function () {
  return devicePixelRatio
}`
