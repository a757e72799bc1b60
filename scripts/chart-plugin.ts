/** A plugin for Vite. The module `virtual:machine-charts` has the machines of `machines/` with their layout, so that the page needs no layout engine. */
import type { Plugin } from 'vite'
import * as machines from '../machines/index.js'
import { layOut } from './chart-layout.js'
import { isMachine } from './charts.js'

const name = 'virtual:machine-charts'
const resolved = `\0${name}`

export function machineCharts(): Plugin {
  return {
    name: 'machine-charts',
    resolveId: (id) => (id === name ? resolved : undefined),
    async load(id) {
      if (id !== resolved) return undefined
      const charts = await Promise.all(Object.values(machines).filter(isMachine).map(layOut))
      return `export const machineCharts = ${JSON.stringify(charts)}`
    },
  }
}
