// Puts a button on each piece of code that copies it.

for (const sample of document.querySelectorAll('.sample')) {
  const button = document.createElement('button');
  button.className = 'button quiet';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(sample.querySelector('pre')?.textContent ?? '');
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  sample.append(button);
}
