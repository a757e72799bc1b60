/** The machines as `scripts/chart-plugin.ts` has laid them out. */
declare module 'virtual:machine-charts' {
  export const machineCharts: readonly import('./chart.js').MachineChart[]
}
