// Ends at the moment that its argument names, in ms since the epoch.
const moment = Number(process.argv[2])
setTimeout(() => console.log(`ended at ${moment}`), Math.max(0, moment - Date.now()))
