/** The machine charts, laid out by `scripts/chart-plugin.ts`. */
declare module 'virtual:machine-charts' {
  export const machineCharts: readonly import('./chart.js').MachineChart[]
}
