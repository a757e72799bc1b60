// Runs in a page before its own scripts: what is wrong with how it is laid out, in words, one line each.
/* global document, innerWidth, getComputedStyle, NodeFilter */

globalThis.lookProblems = () => [...overflowing(), ...overlappingTexts(), ...clippedControls()]

function overflowing() {
  const { scrollWidth } = document.documentElement
  return scrollWidth > innerWidth ? [`the page is ${scrollWidth} px wide in a window of ${innerWidth} px`] : []
}

/** The visible lines of text, each with its rectangle. */
function visibleLines() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const lines = []
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement
    if (node.data.trim() === '' || !isVisible(element)) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const rect of range.getClientRects()) {
      const seen = clip(rect, element)
      if (seen !== undefined) lines.push({ node, text: node.data.trim().slice(0, 40), ...seen })
    }
  }
  return lines
}

function isVisible(element) {
  return element !== null && element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
}

/** Cuts a rectangle to the part inside the window and inside all boxes around it that clip or scroll. */
function clip(rect, element) {
  const seen = { left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom }
  for (let box = element; box !== null; box = box.parentElement) {
    const style = getComputedStyle(box)
    if (style.clipPath !== 'none' || style.clip !== 'auto') return undefined
    if (style.overflowX === 'visible' && style.overflowY === 'visible') continue
    const around = box.getBoundingClientRect()
    seen.left = Math.max(seen.left, around.left)
    seen.top = Math.max(seen.top, around.top)
    seen.right = Math.min(seen.right, around.right)
    seen.bottom = Math.min(seen.bottom, around.bottom)
  }
  return seen.right - seen.left > 1 && seen.bottom - seen.top > 1 ? seen : undefined
}

/** Texts that overlap although no box covers one of them, such as a heading that stays in place. */
function overlappingTexts() {
  const lines = visibleLines().sort((one, other) => one.top - other.top)
  const problems = []
  for (const [index, one] of lines.entries()) {
    for (let next = index + 1; next < lines.length && lines[next].top < one.bottom - 3; next += 1) {
      const other = lines[next]
      if (other.node === one.node) continue
      const left = Math.max(one.left, other.left)
      const right = Math.min(one.right, other.right)
      const bottom = Math.min(one.bottom, other.bottom)
      if (right - left <= 2 || bottom - other.top <= 3) continue
      const [x, y] = [(left + right) / 2, (other.top + bottom) / 2]
      const shown = document.elementsFromPoint(x, y)
      if (!shown.includes(one.node.parentElement) || !shown.includes(other.node.parentElement)) continue
      if (isCovered(one, shown) || isCovered(other, shown)) continue
      problems.push(`'${one.text}' and '${other.text}' overlap`)
    }
  }
  return problems
}

/** Whether a box with a background covers the text. */
function isCovered({ node }, shown) {
  const above = shown.slice(0, shown.indexOf(node.parentElement))
  return above.some((box) => !box.contains(node) && getComputedStyle(box).backgroundColor !== 'rgba(0, 0, 0, 0)')
}

function clippedControls() {
  return [...document.querySelectorAll('button, input, select, textarea, summary, nav a')].flatMap((control) => {
    if (!isVisible(control)) return []
    const name = `${control.localName} '${(control.textContent || control.getAttribute('aria-label') || control.id).trim().slice(0, 40)}'`
    const { width, height } = control.getBoundingClientRect()
    const problems = []
    if (width < 1 || height < 1) problems.push(`${name} has no size`)
    if (
      control.matches('button, summary, nav a') &&
      control.scrollWidth > control.clientWidth + 1 &&
      control.clientWidth > 0
    ) {
      problems.push(`the text of ${name} is cut`)
    }
    const cutter = cuttingBox(control)
    if (cutter !== undefined) problems.push(`${name} is cut by ${cutter}`)
    return problems
  })
}

/** Returns the first box around an element that hides a part of it and cannot be scrolled there. */
function cuttingBox(element) {
  const rect = element.getBoundingClientRect()
  for (let box = element.parentElement; box !== null && box !== document.body; box = box.parentElement) {
    const { overflowX, overflowY } = getComputedStyle(box)
    const around = box.getBoundingClientRect()
    // A box that scrolls hides nothing for good.
    if (/auto|scroll/.test(overflowX) || /auto|scroll/.test(overflowY)) return undefined
    if (/hidden|clip/.test(overflowX) && (rect.left < around.left - 1 || rect.right > around.right + 1)) {
      return box.className || box.localName
    }
    if (/hidden|clip/.test(overflowY) && (rect.top < around.top - 1 || rect.bottom > around.bottom + 1)) {
      return box.className || box.localName
    }
  }
  return undefined
}
