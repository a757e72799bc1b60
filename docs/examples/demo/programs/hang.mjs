// Never ends by itself.
console.log('waiting for an answer that never comes')
setInterval(() => undefined, 1000)
