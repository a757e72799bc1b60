// Does not want to stop.
process.on('SIGTERM', () => console.log('SIGTERM? not now'))
console.log('busy with something important')
setInterval(() => undefined, 1000)
