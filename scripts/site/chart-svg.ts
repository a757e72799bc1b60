/** Draws a machine as a picture for the site, which needs no script. It is the drawing of the page, without numbers. */
import { arrowPath, linePath } from '../../src/page/app/chart-lines.js'
import type { ChartLabel, ChartNode, MachineChart } from '../../src/page/app/chart.js'

/** The SVG of a chart. Its colours are in the site's style sheet. */
export function chartSvg({ id, width, height, states, edges }: MachineChart): string {
  const frames = states.filter(({ kind }) => kind === 'compound')
  const others = states.filter(({ kind }) => kind !== 'compound')
  return [
    `<div class="chart-box" tabindex="0" role="group" aria-label="${escape(id)}, a chart that can be scrolled">`,
    `<svg class="chart" role="img" aria-label="${escape(`The chart of ${id}; the tables below have the same content`)}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    ...frames.map(stateSvg),
    ...edges.map(
      ({ points }) =>
        `<g><path class="chart-stroke" d="${linePath(points)}"/><path class="chart-arrow" d="${arrowPath(points)}"/></g>`,
    ),
    ...others.map(stateSvg),
    ...edges.flatMap(({ labels }) => labels.map(labelSvg)),
    '</svg></div>',
  ].join('')
}

function stateSvg({ x, y, width, height, kind, name, description }: ChartNode): string {
  const middle = x + width / 2
  const centre = y + height / 2
  if (kind === 'start') return `<circle class="chart-start" cx="${middle}" cy="${centre}" r="${width / 2 - 2}"/>`
  const radius = kind === 'any' ? height / 2 : 10
  const box = `<rect x="${x + 1}" y="${y + 1}" width="${width - 2}" height="${height - 2}" rx="${radius}"/>`
  const inner = `<rect class="chart-inner" x="${x + 4}" y="${y + 4}" width="${width - 8}" height="${height - 8}" rx="7"/>`
  const at = kind === 'compound' ? `x="${x + 14}" y="${y + 20}"` : `class="chart-middle" x="${middle}" y="${centre}"`
  const title = description === '' ? '' : `<title>${escape(`${name}: ${description}`)}</title>`
  return `<g class="chart-state chart-${kind}">${title}${box}${kind === 'final' ? inner : ''}<text ${at}>${escape(name)}</text></g>`
}

function labelSvg({ x, y, width, height, text, description }: ChartLabel): string {
  const box = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="3"/>`
  const words = `<text class="chart-middle" x="${x + width / 2}" y="${y + height / 2}">${escape(text)}</text>`
  return `<g class="chart-label"><title>${escape(description)}</title>${box}${words}</g>`
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
